// §32.4: a `server.json`, as registries of MCP servers have them, becomes a server of postern.yaml. The file is a stranger's:
// it says which package and address, and nothing of it decides which program runs, or reads the gateway's environment.
import { isObject, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { chooseVariable, type MovedSecret } from './move-secrets.ts';

/** A sentence: why the file cannot be taken over. */
export class ServerJsonError extends Error {
  override readonly name = 'ServerJsonError';
}

interface ServerOfJson {
  readonly server: JsonObject;
  readonly changes: readonly MovedSecret[];
}

/** A file with servers by their names has neither. */
export const isServerJson = (content: JsonObject): boolean =>
  typeof content.name === 'string' &&
  (Array.isArray(content.remotes) || Array.isArray(content.packages));

/** `com.example/weather` is `weather`. */
export const readServerJsonName = ({ name }: JsonObject): string =>
  typeof name === 'string' ? name.slice(name.lastIndexOf('/') + 1) : '';

/** @throws ServerJsonError */
export function convertServerJson(name: string, content: JsonObject): ServerOfJson {
  const changes: MovedSecret[] = [];
  const inputs = createInputs(name, changes);
  const remotes = readObjects(content.remotes);
  const packages = readObjects(content.packages);
  const wanted = Math.max(
    0,
    remotes.findIndex(({ type }) => type === 'streamable-http'),
  );
  const remote = remotes[wanted];
  const others = [...remotes.map(describeRemote), ...packages.map(describePackage)];
  if (remote !== undefined) {
    const server = convertRemote(remote, inputs);
    noteLeft(others, wanted);
    return { server, changes };
  }
  const chosen = packages.findIndex((one) => findPackageProblem(one) === undefined);
  const found = packages[chosen];
  if (found === undefined)
    throw new ServerJsonError(
      packages.map(findPackageProblem).find((problem) => problem !== undefined) ??
        'There are neither "remotes" nor "packages" in it.',
    );
  const server = convertPackage(found, inputs);
  if (readObjects(found.runtimeArguments).length > 0)
    changes.push({ server: name, member: 'runtimeArguments', what: describeOptions(server) });
  noteLeft(others, chosen);
  return { server, changes };

  function noteLeft(all: readonly string[], taken: number): void {
    all.forEach((what, index) => {
      if (index !== taken)
        changes.push({ server: name, member: what, what: 'left: one is enough' });
    });
  }
}

const readObjects = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

const describeRemote = ({ url }: JsonObject): string => `remote ${quote(url, MAX_SHOWN)}`;
const describePackage = ({ registryType, identifier }: JsonObject): string =>
  `package ${quote(registryType, MAX_SHOWN)} ${quote(identifier, MAX_SHOWN)}`;

const MAX_SHOWN = 80;

/** With options, docker lets a program out of its container. */
const describeOptions = ({ command }: JsonObject): string =>
  `taken over as options of ${quote(command)}: read them in postern.yaml before you start it`;

// A server that runs elsewhere.

const TRANSPORTS: Readonly<Record<string, string>> = { 'streamable-http': 'http', sse: 'sse' };

function convertRemote(remote: JsonObject, inputs: Inputs): JsonObject {
  const type = typeof remote.type === 'string' ? TRANSPORTS[remote.type] : undefined;
  if (type === undefined)
    throw new ServerJsonError(
      `The type of a remote is ${quote(remote.type)}. It must be streamable-http or sse.`,
    );
  const url = inputs.fillIn('url', readText(remote.url, 'url'), remote.variables);
  const headers = inputs.readNamed('headers', remote.headers);
  return { type, url, ...(Object.keys(headers).length > 0 && { headers }) };
}

// A server that is a program of a package.

interface PackageKind {
  /** The registry that the program asks by itself, as publishers write it. */
  readonly registry: RegExp;
  readonly identifier: RegExp;
  /** One version: what is published tomorrow is none of it. */
  readonly version: RegExp;
  readonly needsVersion: boolean;
  build(parts: RunPackage): { readonly command: string; readonly args: readonly string[] };
}

interface RunPackage {
  readonly identifier: string;
  readonly version: string | undefined;
  readonly variables: readonly string[];
  readonly before: readonly string[];
  readonly behind: readonly string[];
}

/** None begins with what would make an option of it. */
const KINDS: Readonly<Record<string, PackageKind>> = {
  npm: {
    registry: /^https:\/\/registry\.npmjs\.org\/?$/,
    identifier: /^(@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*$/i,
    version: /^\d+\.\d+\.\d+([-+][\w.+-]+)?$/,
    needsVersion: true,
    build: ({ identifier, version, before, behind }) => ({
      command: 'npx',
      args: ['-y', ...before, `${identifier}@${version}`, ...behind],
    }),
  },
  pypi: {
    registry: /^https:\/\/pypi\.org(\/simple)?\/?$/,
    identifier: /^[a-z0-9]([\w.-]*[a-z0-9])?$/i,
    version: /^\d[\w.+!-]*$/,
    needsVersion: true,
    build: ({ identifier, version, before, behind }) => ({
      command: 'uvx',
      args: [...before, `${identifier}@${version}`, ...behind],
    }),
  },
  oci: {
    registry: /^https:\/\/(docker\.io|ghcr\.io)\/?$/,
    identifier: /^[a-z0-9][\w./:@-]*(?<!:latest)$/i,
    version: /^[0-9a-z][\w.-]*$/i,
    needsVersion: false,
    build: ({ identifier, version, variables, before, behind }) => ({
      command: 'docker',
      args: [
        ...['run', '-i', '--rm'],
        ...variables.flatMap((name) => ['-e', name]),
        ...before,
        nameImage(identifier, version),
        ...behind,
      ],
    }),
  },
};

/** Newer files have the tag in the identifier, older ones beside it. */
const nameImage = (identifier: string, version: string | undefined): string =>
  version === undefined || /[:@][^/]*$/.test(identifier) ? identifier : `${identifier}:${version}`;

const RANGE = /^(latest|\d+(\.\d+)?\.x|x)$/i;

/** Why the package cannot be taken over, in a sentence. */
function findPackageProblem(found: JsonObject): string | undefined {
  const { registryType, identifier, version, registryBaseUrl, transport } = found;
  const what = describePackage(found);
  const kind = findKind(registryType);
  if (kind === undefined)
    return `The ${what} cannot be taken over: only packages of ${Object.keys(KINDS).join(', ')} can.`;
  if (isObject(transport) && transport.type !== 'stdio')
    return `The ${what} is reached over HTTP (${quote(transport.type, MAX_SHOWN)}). Start it yourself, and write its "url" into postern.yaml.`;
  if (typeof identifier !== 'string' || !kind.identifier.test(identifier))
    return `The ${what} has no name that one of ${registryType} can have.`;
  if (version === undefined ? kind.needsVersion : !isVersion(kind, version))
    return `The ${what} has the version ${quote(version, MAX_SHOWN)}. It must be one version, such as 1.4.0.`;
  if (!kind.needsVersion && version === undefined && !/[:@][^/]*$/.test(identifier))
    return `The ${what} has neither tag nor digest.`;
  // The program would fetch what has this name in the usual registry, and that may be somebody else's.
  if (registryBaseUrl !== undefined && !isUsual(kind, registryBaseUrl))
    return `The ${what} is in a registry of its own (${quote(registryBaseUrl, MAX_SHOWN)}). Set up that registry, and write the command into postern.yaml yourself.`;
  return undefined;
}

const findKind = (type: unknown): PackageKind | undefined =>
  typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;

const isVersion = (kind: PackageKind, version: unknown): boolean =>
  typeof version === 'string' && kind.version.test(version) && !RANGE.test(version);

const isUsual = ({ registry }: PackageKind, url: unknown): boolean =>
  typeof url === 'string' && registry.test(url);

/**
 * Variables by which npx, uvx, docker, Node.js, Python or the loader of the system take code and packages from elsewhere than they seem
 * to: whoever reads the command would not see what it runs.
 */
const OBEYED_BY_RUNNER =
  /^(?:PATH|HOME|IFS|ENV|BASH_.*|SHELL|PREFIX|LOCPATH|NLSPATH|GCONV_PATH|(?:REQUESTS|CURL)_CA_BUNDLE|(?:NPM|NODE|UV|PIP|DOCKER|LD|DYLD|GLIBC|SSL|COREPACK)_.*|PYTHON.*|.*_PROXY)$/i;
const HARMLESS = /^(?:NODE_ENV|PYTHONUNBUFFERED|PYTHONUTF8|PYTHONIOENCODING)$/;

/** One that whoever runs the server fills in is theirs. */
function checkVariable({ name, value, default: fallback }: JsonObject): void {
  if (typeof name !== 'string' || !/^[A-Za-z_]\w*$/.test(name))
    throw new ServerJsonError(`${quote(name, MAX_SHOWN)} is no name of an environment variable.`);
  if (value === undefined && fallback === undefined) return;
  if (OBEYED_BY_RUNNER.test(name) && !HARMLESS.test(name))
    throw new ServerJsonError(
      `The environment variable ${quote(name, MAX_SHOWN)} could change which program or package is run. If you trust this file, take it out, and write it into postern.yaml yourself.`,
    );
}

function convertPackage(found: JsonObject, inputs: Inputs): JsonObject {
  const { registryType, identifier, version } = found;
  readObjects(found.environmentVariables).forEach(checkVariable);
  const env = inputs.readNamed('env', found.environmentVariables);
  const built = findKind(registryType)?.build({
    identifier: readText(identifier, 'identifier'),
    version: typeof version === 'string' ? version : undefined,
    variables: Object.keys(env),
    before: inputs.readArguments('runtimeArguments', found.runtimeArguments),
    behind: inputs.readArguments('packageArguments', found.packageArguments),
  });
  return { ...built, ...(Object.keys(env).length > 0 && { env }) };
}

// Inputs that users are to give: values, defaults and variables.

type Inputs = ReturnType<typeof createInputs>;

function createInputs(server: string, changes: MovedSecret[]) {
  const taken = new Set<string>();
  const note = (member: string, what: string) => changes.push({ server, member, what });

  /** Undefined where nothing has to be said. */
  function resolve(member: string, key: string, input: JsonObject): string | undefined {
    const { value, default: fallback, isSecret, isRequired } = input;
    if (value !== undefined) return fillIn(key, readText(value, key), input.variables);
    if (isSecret !== true && fallback !== undefined) {
      const text = readText(fallback, key);
      // A brace would end the variable.
      if (text.includes('}')) return text;
      const variable = choose(key);
      note(member, `${quote(text, MAX_SHOWN)}, unless ${variable} in .env says otherwise`);
      return `\${${variable}:-${text}}`;
    }
    if (isRequired !== true && isSecret !== true) {
      note(member, 'left out: it is not required');
      return undefined;
    }
    if (isRequired !== true) {
      note(member, 'left out: it is a secret that is not required');
      return undefined;
    }
    const variable = choose(key);
    note(member, `to be filled in: put ${variable} into .env${describeInput(input)}`);
    return `\${${variable}}`;
  }

  const choose = (key: string): string => {
    const variable = chooseVariable(server, key, (name) => taken.has(name));
    taken.add(variable);
    return variable;
  };

  function fillIn(key: string, template: string, variables: unknown): string {
    const known = isObject(variables) ? variables : {};
    // The same variable may stand there twice.
    const resolved = new Map<string, string>();
    return template.replace(/\{([^{}]+)\}/g, (whole, name: string) => {
      const input = Object.hasOwn(known, name) ? known[name] : undefined;
      if (!isObject(input)) return whole;
      const text =
        resolved.get(name) ?? resolve(`${key} {${name}}`, name, { ...input, isRequired: true });
      if (text === undefined) return '';
      resolved.set(name, text);
      return text;
    });
  }

  return {
    /** A text with `{variables}`. */
    fillIn,
    /** `headers`, or `environmentVariables`, by name. */
    readNamed(member: string, given: unknown) {
      return Object.fromEntries(
        readObjects(given).flatMap((input) => {
          const name = readText(input.name, `${member}.name`);
          const text = resolve(`${member}.${name}`, name, input);
          return text === undefined ? [] : [[name, text]];
        }),
      );
    },
    readArguments: (member: string, given: unknown) =>
      readObjects(given).flatMap((input, index) => {
        const place = `${member}[${index}]`;
        const { type, name, valueHint, value, default: fallback } = input;
        if (type === 'named') {
          const flag = readText(name, `${place}.name`);
          // A flag that takes nothing.
          const hasValue = value !== undefined || fallback !== undefined || isAsked(input);
          if (!hasValue) return [flag];
          const text = resolve(place, flag, input);
          return text === undefined ? [] : [flag, text];
        }
        const key = typeof valueHint === 'string' ? valueHint : place;
        const text = resolve(place, key, input);
        return text === undefined ? [] : [text];
      }),
  };
}

const isAsked = ({ isRequired, isSecret, choices, format }: JsonObject): boolean =>
  [isRequired, isSecret].includes(true) || choices !== undefined || format !== undefined;

/** Also at the end: what is put behind it may begin with a brace. */
const COULD_BE_VARIABLE = /\$(\{|$)/;

/** @throws ServerJsonError for what is no text, or would read the gateway's environment. */
function readText(value: unknown, what: string): string {
  if (typeof value !== 'string')
    throw new ServerJsonError(
      `${quote(what, MAX_SHOWN)} must be a text, not ${quote(value, MAX_SHOWN)}.`,
    );
  if (COULD_BE_VARIABLE.test(value))
    throw new ServerJsonError(
      `${quote(what, MAX_SHOWN)} is ${quote(value, MAX_SHOWN)}, and \${ would read the gateway's environment. If you trust this file, take it out, and write it into postern.yaml yourself.`,
    );
  return value;
}

const MAX_DESCRIPTION = 120;

function describeInput({ description, choices }: JsonObject): string {
  const said = typeof description === 'string' ? ` (${quote(description, MAX_DESCRIPTION)})` : '';
  return Array.isArray(choices)
    ? `${said}, one of ${choices.map((one) => quote(one, MAX_SHOWN)).join(', ')}`
    : said;
}
