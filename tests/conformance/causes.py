"""Reasons of field errors, under short names."""

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
UNSUPPORTED = "FieldValueNotSupported"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
