"""The code world at the terminal and in editors: `denizen code`, `denizen replay`, `denizen acp`."""
