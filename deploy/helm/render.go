// Renders a chart as Helm does (Go's templates, Sprig, and the few functions that Helm adds), and reads what came out as YAML.
// Used by try-chart.sh: render CHART VALUES…
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type tree = map[string]interface{}

func main() {
	if err := render(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart string, valueFiles []string) error {
	values, err := load(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return err
	}
	for _, file := range valueFiles {
		given, err := load(file)
		if err != nil {
			return err
		}
		values = merge(values, given)
	}
	about, err := load(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	// Templates see its fields with a capital: .Chart.Name.
	head := tree{}
	for name, value := range about {
		head[strings.ToUpper(name[:1])+name[1:]] = value
	}
	templates, err := parse(chart)
	if err != nil {
		return err
	}
	scope := tree{
		"Values":   values,
		"Chart":    head,
		"Release":  tree{"Name": "firebreak", "Namespace": "default", "Service": "Helm"},
		"Template": tree{"BasePath": "templates"},
	}
	for _, one := range templates.Templates() {
		name := one.Name()
		if !strings.HasPrefix(name, "templates/") || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		var out bytes.Buffer
		if err := templates.ExecuteTemplate(&out, name, scope); err != nil {
			return err
		}
		fmt.Print(out.String())
		if err := tell(name, bytes.NewReader(out.Bytes())); err != nil {
			return err
		}
	}
	return templates.ExecuteTemplate(io.Discard, "templates/NOTES.txt", scope)
}

func parse(chart string) (*template.Template, error) {
	root := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		var out bytes.Buffer
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		err := encoder.Encode(value)
		return strings.TrimSuffix(out.String(), "\n"), err
	}
	functions["include"] = func(name string, scope interface{}) (string, error) {
		var out bytes.Buffer
		err := root.ExecuteTemplate(&out, name, scope)
		return out.String(), err
	}
	functions["required"] = func(why string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(why)
		}
		return value, nil
	}
	functions["fail"] = func(why string) (string, error) { return "", errors.New(why) }
	root.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if _, err := root.New("templates/" + filepath.Base(file)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// tell prints, after the text itself, the kind of each object in a rendered file; what is not YAML, or has no kind or name, is an error.
func tell(name string, text io.Reader) error {
	decoder := yaml.NewDecoder(text)
	for {
		object := tree{}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(object) == 0 {
			continue
		}
		about, _ := object["metadata"].(tree)
		if object["kind"] == nil || object["apiVersion"] == nil || about["name"] == nil {
			return fmt.Errorf("%s: an object without apiVersion, kind or name", name)
		}
		fmt.Printf("\nobject: %v\n", object["kind"])
	}
}

func load(file string) (tree, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values := tree{}
	return values, yaml.Unmarshal(text, &values)
}

// merge puts given values over a chart's own: objects field by field, everything else whole.
func merge(own tree, given tree) tree {
	for name, value := range given {
		inner, isTree := value.(tree)
		before, wasTree := own[name].(tree)
		if isTree && wasTree {
			own[name] = merge(before, inner)
		} else {
			own[name] = value
		}
	}
	return own
}
