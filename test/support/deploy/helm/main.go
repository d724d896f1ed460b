// What `helm template` does to a chart, with the engine and the functions that Helm has: text/template and sprig.
// Reads {"templates": {name: text}, "context": {"Values", "Release", "Chart"}} and writes {name: text}; what goes wrong is
// printed, with exit code 1.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type input struct {
	Templates map[string]string      `json:"templates"`
	Context   map[string]interface{} `json:"context"`
}

func main() {
	var chart input
	if err := json.NewDecoder(os.Stdin).Decode(&chart); err != nil {
		fail(err)
	}
	// A value that is not there is nothing; the functions below are Helm's own.
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(sprig.TxtFuncMap()).Funcs(template.FuncMap{
		"toYaml":   toYaml,
		"required": required,
		"include": func(name string, data interface{}) (string, error) {
			var out bytes.Buffer
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	})
	for name, text := range chart.Templates {
		if _, err := root.New(name).Parse(text); err != nil {
			fail(err)
		}
	}
	rendered := map[string]string{}
	for name := range chart.Templates {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		context := map[string]interface{}{}
		for key, value := range chart.Context {
			context[key] = value
		}
		context["Template"] = map[string]interface{}{"Name": name, "BasePath": path.Dir(name)}
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name, context); err != nil {
			fail(err)
		}
		rendered[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	if err := json.NewEncoder(os.Stdout).Encode(rendered); err != nil {
		fail(err)
	}
}

func toYaml(value interface{}) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func required(message string, value interface{}) (interface{}, error) {
	if value == nil || value == "" {
		return value, errors.New(message)
	}
	return value, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
