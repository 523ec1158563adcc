"""Programs that the tools run, with bounded output and no process left running; among them the filters of jq."""
