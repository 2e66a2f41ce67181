"""Rules in other languages → files of CEL as a person would write them.

`eql` and `sigma` read the rules of these languages. `fields` finds the types of the fields that
rules name. `words` writes names, texts and conditions of CEL. What a rule says is translated
exactly, or it is an error with its place.
"""
