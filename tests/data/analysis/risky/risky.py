import ast
import hashlib
import os
import pickle
import subprocess

import requests
import yaml


def run(text, database, user):
    eval(text)  # RISK eval
    ast.literal_eval(text)
    eval("1 + 1")
    subprocess.run(text, shell=True)  # RISK shell
    subprocess.run([text], shell=False)
    os.system("ls " + text)  # RISK shell
    pickle.loads(text)  # RISK deserialise
    yaml.load(text)  # RISK deserialise
    yaml.load(text, Loader=yaml.SafeLoader)
    hashlib.md5(text)  # RISK weak-hash
    hashlib.md5(text, usedforsecurity=False)
    requests.get(text, verify=False)  # RISK tls
    database.execute(f"SELECT name FROM users WHERE id = {user}")  # RISK sql
    database.execute("SELECT name FROM users WHERE id = %s" % user)  # RISK sql
    database.execute("DELETE FROM users WHERE id = {}".format(user))  # RISK sql
    database.execute("SELECT name FROM users WHERE id = ?", (user,))
    database.execute("SELECT name " "FROM users")


password = "hunter2hunter"  # RISK secret
settings = {"api_key": "swordfish-0815"}  # RISK secret
aws = "AKIAIOSFODNN7EXAMPLE"  # RISK secret
secret = ""
token = os.environ["TOKEN"]
api_key = "<your key here>"
max_tokens = "hundreds-of-them"
