// The chart of deploy/helm as Helm would render it. There is no Helm in Debian or among npm's packages, so main.go does
// what `helm template` does, by the same libraries.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { ensureCommand, ensureFile } from '../../tools/debian.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  // biome-ignore lint/suspicious/noExplicitAny: what it is depends on the kind, and the tests look into all of them.
  readonly [member: string]: any;
}

export type Values = Readonly<Record<string, unknown>>;

export interface Rendered {
  readonly manifests: readonly Manifest[];
  readonly notes: string;
}

const CHART = fileURLToPath(new URL('../../../../deploy/helm/postern/', import.meta.url));
const SOURCE = fileURLToPath(new URL('main.go', import.meta.url));
/** Where Debian's packages of Go libraries lie. */
const GOPATH = '/usr/share/gocode';

const read = (...path: readonly string[]): string => readFileSync(join(CHART, ...path), 'utf8');

/** Compiles the renderer into a folder. */
export function buildRenderer(folder: string): (values: Values) => Rendered {
  ensureCommand('go', 'golang-go');
  ensureFile(`${GOPATH}/src/github.com/Masterminds/sprig`, 'golang-github-masterminds-sprig-dev');
  ensureFile(`${GOPATH}/src/gopkg.in/yaml.v3`, 'golang-gopkg-yaml.v3-dev');
  const program = join(folder, 'render');
  const env = { ...process.env, GO111MODULE: 'off', GOPATH, GOFLAGS: '' };
  execFileSync('go', ['build', '-o', program, SOURCE], { env });
  return (values) => renderChart(program, values);
}

/** @throws Error as Helm would, for values that the schema does not allow or a template refuses. */
function renderChart(program: string, given: Values): Rendered {
  const values = merge(parse(read('values.yaml')), given);
  checkValues(values);
  const { name, version, appVersion } = parse(read('Chart.yaml'));
  const templates = readdirSync(join(CHART, 'templates')).map((file) => [
    `postern/templates/${file}`,
    read('templates', file),
  ]);
  const context = {
    Values: values,
    Chart: { Name: name, Version: version, AppVersion: appVersion },
    Release: { Name: 'mcp', Namespace: 'tools', Service: 'Helm' },
  };
  const input = JSON.stringify({ templates: Object.fromEntries(templates), context });
  const { status, stdout, stderr } = spawnSync(program, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const rendered: Readonly<Record<string, string>> = JSON.parse(stdout);
  const { 'postern/templates/NOTES.txt': notes = '', ...files } = rendered;
  const manifests = Object.values(files).flatMap((text) =>
    parseAllDocuments(text).flatMap((document) => {
      if (document.errors.length > 0) throw new Error(`${document.errors[0]}\n${text}`);
      const manifest: Manifest | null = document.toJS();
      return manifest === null ? [] : [manifest];
    }),
  );
  return { manifests, notes };
}

function checkValues(values: Values): void {
  const ajv = new Ajv({ strict: false, allErrors: true });
  const validate = ajv.compile(JSON.parse(read('values.schema.json')));
  if (!validate(values)) throw new Error(ajv.errorsText(validate.errors, { dataVar: 'values' }));
}

/** Objects member by member, everything else as a whole, and null takes a member away: as Helm does. */
function merge(base: Values, over: Values): Values {
  const merged = Object.entries(over).map(([key, value]) => {
    const below = base[key];
    return [key, isObject(below) && isObject(value) ? merge(below, value) : value];
  });
  const all = Object.entries({ ...base, ...Object.fromEntries(merged) });
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

const isObject = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
