// Empty: a package that declares functions without a body, as linkname does,
// must have an assembly file.
