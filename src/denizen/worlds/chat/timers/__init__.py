"""Turns that a clock starts: cron jobs and the heartbeat."""
