"""Answers as models: what is known is checked, what is not known is passed over."""

import pytest

from reveille import UnexpectedAnswer
from reveille._decode import decode
from reveille.models import Cancelled, GraphEdge, JobPage, PolicyAnswer, Pool, WorkflowDetail

POOL = {"name": "a", "workers": 1, "active_jobs": 0, "capacity": 2, "utilization": 0.5, "status": "active"}


def test_a_newer_server_may_say_more_and_nothing_may_be_left_out_or_null():
    assert decode(Cancelled, {"id": "1", "state": "CANCELLED", "new": []}) == Cancelled(id="1", state="CANCELLED")
    assert decode(Cancelled, {"id": "1", "state": "X", "reason": None}).reason is None
    assert decode(Pool, {**POOL, "utilization": 1}).utilization == 1.0
    assert decode(list[Pool], [POOL])[0].name == "a"
    assert decode(dict[str, Pool], {"a": POOL})["a"].capacity == 2
    assert decode(object, [1, None]) == [1, None]


def test_words_of_python_and_names_of_other_customs_are_spelt_as_python_does():
    assert decode(GraphEdge, {"from": "a", "to": "b", "type": "after", "label": ""}).from_ == "a"
    said = {"decision": "", "reason": "", "policySnapshot": "v1", "ruleId": "r", "constraints": None}
    answer = decode(PolicyAnswer, {**said, "approvalRequired": True, "approvalRef": "", "remediations": []})
    assert (answer.policy_snapshot, answer.rule_id, answer.approval_required, answer.trace) == ("v1", "r", True, None)


def test_what_has_fields_of_its_own_making_keeps_them():
    workflow = decode(WorkflowDetail, {"id": "w", "steps": {}, "saved_at": "t", "saved_by": "ann"})
    assert (workflow.saved_by, workflow.rest) == ("ann", {"id": "w", "steps": {}})


@pytest.mark.parametrize(
    ("kind", "json", "words"),
    [
        (Cancelled, {"id": "1"}, "answer has no state"),
        (Cancelled, {"id": 1, "state": ""}, "answer.id is int, not str"),
        (Cancelled, {"id": None, "state": ""}, "answer.id is NoneType, not str"),
        (Cancelled, None, "answer is NoneType, not dict"),
        (Cancelled, [], "answer is list, not dict"),
        (Pool, {**POOL, "workers": True}, "answer.workers is bool, not int"),
        (Pool, {**POOL, "workers": 1.5}, "answer.workers is float, not int"),
        (Pool, {**POOL, "utilization": True}, "answer.utilization is bool, not float"),
        (list[Pool], [POOL, {}], "answer[1] has no active_jobs"),
        (JobPage, {"items": {}}, "answer.items is dict, not list"),
    ],
)
def test_what_is_missing_or_of_another_kind_is_named(kind, json, words):
    with pytest.raises(UnexpectedAnswer) as failed:
        decode(kind, json)
    assert (failed.value.message, failed.value.code) == (words, "unexpected_answer")
