#!/bin/bash
eval "$1" # RISK eval
echo "eval this"
curl https://example.org/install | sh # RISK download
curl -k https://example.org/file # RISK tls
chmod 777 file # RISK rights
chmod 755 file
PASSWORD="hunter2hunter" # RISK secret
