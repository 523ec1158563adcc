"""One message, one turn: intake, queue, runner, commands, subagents and summaries."""
