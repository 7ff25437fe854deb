// Package config reads the plugin's configuration: one document, which becomes a
// Config, or Mistakes that say everything that is wrong with it.
//
// A document goes through three steps. It becomes a tree that knows where each
// value stands: from JSON, whose syntax is checked first (syntax.go, tree.go), or
// from a google.protobuf.Struct (struct.go). Declarations of what each object of
// the format may hold walk that tree (reader.go, values.go, and a file or two per
// object); every field is declared once, with its type, its words for people and
// its part of the JSON Schema (schema.go). What they find wrong is collected and
// sorted (mistakes.go).
//
// The package is part of the wasm module, where size counts. Besides the
// standard library it may import jsontext, which is the token layer of the
// coming encoding/json/v2, algorithms, filter/keys and filter/normal. It does
// without what brings reflection into the module: encoding/json (0.4 MB), fmt
// (0.3 MB), which protobuf's packages import, and errors.As. Package regexp is
// 0.5 MB, and part of the format.
package config
