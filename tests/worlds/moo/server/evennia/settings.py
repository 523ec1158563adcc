"""The settings of an Evennia server for tests: on 127.0.0.1 alone, without web pages, with a cheap password hash."""

import os

from evennia.settings_default import *  # noqa: F403 - as Evennia's own template does

SERVERNAME = "game"
TELNET_PORTS, SSH_PORTS, AMP_PORT = ([int(port)] for port in os.environ["EVENNIA_PORTS"].split(","))
AMP_PORT = AMP_PORT[0]
TELNET_INTERFACES = SSH_INTERFACES = ["127.0.0.1"]
AMP_HOST = AMP_INTERFACE = "127.0.0.1"
SSH_ENABLED = True
WEBSERVER_ENABLED = WEBCLIENT_ENABLED = WEBSOCKET_CLIENT_ENABLED = False
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_THROTTLE_LIMIT = CREATION_THROTTLE_LIMIT = 1_000_000
SECRET_KEY = "tests"
