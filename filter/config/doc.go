// Package config reads the plugin's configuration: one JSON document, which
// becomes a Config, or Mistakes that say everything that is wrong with it.
//
// A document goes through three steps. Its syntax is checked and it becomes a
// tree that knows where each value stands (syntax.go, tree.go). Declarations of
// what each object of the format may hold walk that tree (reader.go, and one
// file per object); every field is declared once, with its type and its words
// for people. What they find wrong is collected and sorted (mistakes.go).
//
// The package is part of the wasm module, where size counts. Besides the
// standard library it may import jsontext, which is the token layer of the
// coming encoding/json/v2, algorithms, filter/keys and filter/normal. It does
// without what brings reflection into the module: encoding/json (0.4 MB), fmt
// (0.3 MB) and errors.As.
package config
