"""Programs run for the tools: their output bounded, no process left behind; among them the filters of jq."""
