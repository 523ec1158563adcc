"""The analyses of `analyze`: how complex code is, who calls whom, what is risky."""
