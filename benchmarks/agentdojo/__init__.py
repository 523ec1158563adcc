"""AgentDojo's suites, played through `run_agent` by a scripted model that obeys every injection it reads."""
