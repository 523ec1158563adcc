"""Recovery of calls that a server left in the text of a reply."""

from denizen.actions.recovery.recover import RECOVERED, Recovered, may_hold_calls, recover_calls

__all__ = ["RECOVERED", "Recovered", "may_hold_calls", "recover_calls"]
