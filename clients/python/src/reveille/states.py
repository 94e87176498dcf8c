"""The words for an end. A job or run that is in one of these states stays there.

(A result that output policy looks at late can still turn SUCCEEDED into OUTPUT_QUARANTINED, and a person can turn it
back.)
"""

JOB_ENDS = frozenset({"SUCCEEDED", "FAILED", "TIMEOUT", "CANCELLED", "DENIED", "OUTPUT_QUARANTINED"})
RUN_ENDS = frozenset({"succeeded", "failed", "denied", "cancelled", "timed_out"})
