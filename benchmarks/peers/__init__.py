"""One small driver per engine that Denizen is measured against."""
