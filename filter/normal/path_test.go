package normal

import (
	"bytes"
	"strings"
	"testing"
)

func TestEverySpellingOfAPathIsOnePath(t *testing.T) {
	spellings := map[string][]string{
		"/login": {
			"/login", "/login/", "//login", "/login//", "/./login", "/login/.", "/x/../login", "/../login",
			"/../../login", "/%6cogin", "/%6Cogin", "/%6c%6f%67%69%6e", "/login?next=/", "/login/?a=/x/../y",
			"/login#top", "/login?a#b", "/x/%2e%2e/login", "/x/.%2E/login", "/%2e/login", "/x//../login",
			"/x/y/../../login", "/login/x/..", "/login/x/../", "/.//login/./", "login", "./login", "../login",
			"http://example.com/login", "HTTPS://example.com:8443//login/?x", "x+1-y.z://a@b/login",
		},
		"/": {
			"/", "", "//", "///", "/.", "/..", "/../..", "/a/..", "/a/../", "/a/./..", "/a/%2e%2e", "/?x", "?x", "#x",
			"http://example.com", "http://example.com/", "http://example.com?a=/login", "http://", ".", "..",
		},
		"/a":       {"/a/b/..", "/a/b/../", "/a/b/c/../..", "/a/.", "/b/..//a"},
		"/a/b":     {"/a/b", "/a//b", "/a/./b", "/a/x/../b", "/a/x/%2E./b/", "/a/b/c/.."},
		"/b":       {"/a//../b", "/a/..//b", "/a/../b", "//a/../b"},
		"/a%2Fb":   {"/a%2Fb", "/a%2fb", "/a%2fb/", "/a%252Fb"},
		"/..%2F":   {"/..%2F", "/..%2f", "/%2e%2e%2f"},
		"/a/..%2F": {"/a/..%2f"},
		"*":        {"*", "*?x"},
		"/café":    {"/café", "/caf%C3%A9", "/caf%c3%a9"},
	}
	for want, paths := range spellings {
		for _, path := range paths {
			if got := Path(path); got != want {
				t.Errorf("%q becomes %q, want %q", path, got, want)
			}
		}
	}
}

func TestAnotherPathStaysAnotherPath(t *testing.T) {
	paths := map[string]string{
		"/loginx":            "/loginx",
		"/login.css":         "/login.css",
		"/Login":             "/Login",
		"/login;x=1":         "/login;x=1",
		`/\login`:            `/\login`,
		"/%5clogin":          `/\login`,
		"/a/..;/b":           "/a/..;/b",
		"/login%00":          "/login\x00",
		"/login%20":          "/login ",
		"/login+x":           "/login+x",
		"/login%3Fx":         "/login?x",
		"/login%23x":         "/login#x",
		"/login%252e":        "/login%2e",
		"/%256cogin":         "/%6cogin",
		"/%252e%252e/login":  "/%2e%2e/login",
		"/...":               "/...",
		"/.../..../":         "/.../....",
		"/.a/..b/c./d..":     "/.a/..b/c./d..",
		"/%":                 "/%",
		"/%2":                "/%2",
		"/%zz/%6":            "/%zz/%6",
		"/%%36c":             "/%6c",
		"/%c0%afx":           "/\xc0\xafx",
		"/%c0%ae%c0%ae/x":    "/\xc0\xae\xc0\xae/x",
		"%2a":                "/*",
		"/*":                 "/*",
		"**":                 "/**",
		"%2Flogin":           "/%2Flogin",
		"http:/login":        "/http:/login",
		"/http://host/login": "/http:/host/login",
		"://host/login":      "/:/host/login",
		"1a://host/login":    "/1a:/host/login",
		"http%3A//host/a":    "/http:/host/a",
	}
	for path, want := range paths {
		if got := Path(path); got != want {
			t.Errorf("%q becomes %q, want %q", path, got, want)
		}
	}
}

func TestAppendPathKeepsWhatIsInTheBuffer(t *testing.T) {
	if got := string(AppendPath([]byte("key/"), []byte("/../../a/../b"))); got != "key//b" {
		t.Errorf("appending to %q gives %q", "key/", got)
	}
	if got := string(AppendPath([]byte("a/"), []byte("/"))); got != "a//" {
		t.Errorf("appending to %q gives %q", "a/", got)
	}
}

func TestNormalisingDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 100)
	path, host := []byte("http://h/a/./%2e%2e//b%2Fc/?x"), []byte("API.Example.com.:443")
	if n := testing.AllocsPerRun(100, func() {
		AppendPath(dst, path)
		AppendHost(dst, host)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{"/", "*", "", "//a/../%2e%2e/b%2fc;d?e#f", "http://a/b", "/%", "a/..//../b/.", "/%252f\\%00"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := Path(path)
		if appended := AppendPath([]byte("//x/"), []byte(path)); !bytes.Equal(appended, []byte("//x/"+got)) {
			t.Fatalf("%q is %q alone and %q behind a prefix", path, got, appended)
		}
		if got == "*" && strings.HasPrefix(path, "*") {
			return
		}
		if !strings.HasPrefix(got, "/") {
			t.Errorf("%q becomes %q, which does not begin with a slash", path, got)
		}
		if len(got) > len(path)+1 {
			t.Errorf("%q becomes %q, which is more than a byte longer", path, got)
		}
		if got != "/" {
			for _, segment := range strings.Split(got[1:], "/") {
				if segment == "" || segment == "." || segment == ".." {
					t.Errorf("%q becomes %q, which has a segment %q", path, got, segment)
				}
			}
		}
		// Decoding once may bring forth another escape or a question mark, which
		// a second pass would act on; without them it must change nothing.
		if again := Path(got); again != got && !strings.ContainsAny(got, "%?#") {
			t.Errorf("%q becomes %q, and that becomes %q", path, got, again)
		}
		for _, same := range []string{path + "?x", path + "#x"} {
			if other := Path(same); other != got {
				t.Errorf("%q becomes %q, but %q becomes %q", path, got, same, other)
			}
		}
	})
}
