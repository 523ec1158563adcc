#!/bin/sh
echo high
