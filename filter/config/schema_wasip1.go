package config

// In the wasm module there is no schema. All that makes one is empty here, since
// it would add 0.14 MB: see schema.go.

type (
	schema struct{}
	notes  struct{}
)

func (f field[T]) explain(string) field[T]    { f.notes = notes{}; return f }
func (f field[T]) defaultsTo(string) field[T] { f.notes = notes{}; return f }

func keywords(string) schema                  { return schema{} }
func patternSchema(string) schema             { return schema{} }
func boundedSchema(int) schema                { return schema{} }
func enumSchema([]string) schema              { return schema{} }
func wholeSchema(int64, int64) schema         { return schema{} }
func arraySchema(schema, string) schema       { return schema{} }
func eitherSchema(schema, schema) schema      { return schema{} }
func mapSchema(schema, schema, string) schema { return schema{} }
func objectSchema([]*property, string) schema { return schema{} }
func defined(string, schema) schema           { return schema{} }

var clientIPSchema, chargeSchema, limitSchema schema
