"""What can be told of code without running it: how complex it is, who calls whom, what was copied, what is risky."""
