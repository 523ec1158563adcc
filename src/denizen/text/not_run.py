"""What the model reads in place of the result of a call that didn't run, or was broken off."""

from denizen.messages import StopReason

MISSING = "[Tool result missing — session was interrupted]"
"""What stands for a result that the transcript doesn't have (decisions, "A call without a result")."""
CUT_OFF = (
    "not run: the answer was cut off by the length limit, so this call may be incomplete. "
    "Make it again, smaller: write a long file in several steps."
)
CANCELLED = "not run: cancelled"
STOPPED_WHILE_RUNNING = "cancelled while it ran: its effect may be there in part"
ELSEWHERE = "not run: this conversation branched off before the call was"
DROPPED = "not run: the user interrupted with a new message"
BROKEN_OFF = "not run: the answer broke off"


NOT_RUN: dict[StopReason, str] = {
    "length": CUT_OFF,
    "refusal": BROKEN_OFF,
    "error": BROKEN_OFF,
    "aborted": BROKEN_OFF,
}
"""Why the calls of an answer that ended so aren't run."""
