#!/bin/sh
# Stands before the compiler of a build: an object that another build made of the same sources, which
# its folder TW_REUSE_FROM and the list TW_REUSE_LIST name, is copied instead of compiled again.
object=
dependencies=
previous=
for argument; do
  case $previous in
    -o) object=$argument ;;
    -MF) dependencies=$argument ;;
  esac
  previous=$argument
done
if [ -n "$object" ] && grep -qxF "$object" "$TW_REUSE_LIST"; then
  : >"$dependencies"
  exec cp "$TW_REUSE_FROM/$object" "$object"
fi
exec "$@"
