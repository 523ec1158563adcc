"""Django settings of the server: its own, with a database and a Redis that `djangomoo.py` names."""

import os
from urllib.parse import urlsplit

from moo.settings.base import *  # noqa: F403

_place = urlsplit(os.environ["MOO_DATABASE"])

SECRET_KEY = "for tests"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _place.hostname,
        "PORT": str(_place.port),
        "USER": _place.username or "",
        "NAME": _place.path[1:],
        "CONN_MAX_AGE": 60,
    }
}
CELERY_BROKER_URL = os.environ["CELERY_BROKER_URL"]
_cache = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": CELERY_BROKER_URL}
CACHES = {"default": _cache | {"TIMEOUT": None}}  # it says who is connected: one who is forgotten is told nothing
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick; the passwords are no secret
