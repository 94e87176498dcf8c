"""A safety kernel of the reference's kind: the stock SDK's own gRPC servicer, with moods.

It answers as told, or with an error, or not at all. Its port stays its own while it is away.
"""

import contextlib
import threading
from concurrent import futures

import grpc
from cap.pb.cordum.agent.v1 import safety_pb2, safety_pb2_grpc

ALLOW = safety_pb2.DECISION_TYPE_ALLOW
DENY = safety_pb2.DECISION_TYPE_DENY
REQUIRE_HUMAN = safety_pb2.DECISION_TYPE_REQUIRE_HUMAN
THROTTLE = safety_pb2.DECISION_TYPE_THROTTLE
ALLOW_WITH_CONSTRAINTS = safety_pb2.DECISION_TYPE_ALLOW_WITH_CONSTRAINTS

# `cordum.v1.OutputCheckResponse` by hand, because the SDK does not have it: 1 = decision, 2 = reason, 3 = rule_id.
OUTPUT_ALLOW = b""
OUTPUT_QUARANTINE = b"\x08\x01\x12\x04leak\x1a\x02r1"


class Kernel(safety_pb2_grpc.SafetyKernelServicer):
    def __init__(self):
        self.mood = "well"
        self.decision = ALLOW
        self.output_mood = "well"
        self.output = OUTPUT_ALLOW
        self.asked = []
        self.looked_at = []
        self.awake = threading.Event()

    def Check(self, request, context):
        self.asked.append(request)
        self.feel(self.mood, context)
        constraints = safety_pb2.PolicyConstraints(budgets=safety_pb2.BudgetConstraints(max_runtime_ms=60_000))
        return safety_pb2.PolicyCheckResponse(
            decision=self.decision,
            reason="the kernel says so",
            rule_id="kernel-rule",
            policy_snapshot="kernel:1",
            constraints=constraints if self.decision == ALLOW_WITH_CONSTRAINTS else None,
        )

    def Evaluate(self, request, context):
        return self.Check(request, context)

    Explain = Simulate = Evaluate

    def check_output(self, request, context):
        self.looked_at.append(request)
        self.feel(self.output_mood, context)
        return self.output

    def feel(self, mood, context):
        if mood == "hangs":
            self.awake.wait(30)
        if mood == "fails":
            context.abort(grpc.StatusCode.INTERNAL, "out of sorts")


@contextlib.contextmanager
def running_kernel():
    """A kernel and its address."""
    kernel = Kernel()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    safety_pb2_grpc.add_SafetyKernelServicer_to_server(kernel, server)
    look = grpc.unary_unary_rpc_method_handler(kernel.check_output)
    output = grpc.method_handlers_generic_handler("cordum.v1.OutputPolicyService", {"CheckOutput": look})
    server.add_generic_rpc_handlers((output,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield kernel, f"127.0.0.1:{port}"
    finally:
        kernel.awake.set()
        server.stop(grace=None).wait()
