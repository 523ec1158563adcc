"""The analyses of `analyze`: how complex code is, who calls whom, what was copied, what is risky."""
