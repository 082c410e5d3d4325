"""The notebook's magics: ``%%metal``, ``%metal`` and the completer (imported as ``metalnb.magics``)."""

if __name__ == "magics":
    raise ImportError("the folder magics/ is the package metalnb.magics: import that instead")
