#!/bin/sh
# Stands before the compiler of a build: an object that another build made of the same sources is
# copied instead of compiled again. TW_REUSE_FROM is that build's folder, TW_REUSE_LIST a file that
# names such objects, TW_REUSE_ROOT the folder of its sources without the first slash: objects of
# what lies below it but not below this build's sources have it in their names.
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
known=$(echo "$object" | sed "s|$TW_REUSE_ROOT/||")
if [ -n "$known" ] && grep -qxF "$known" "$TW_REUSE_LIST"; then
  : >"$dependencies"
  exec cp "$TW_REUSE_FROM/$known" "$object"
fi
exec "$@"
