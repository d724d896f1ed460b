// §32.4: converts a `server.json` of an MCP registry into a server of postern.yaml. The file is untrusted: it names a package and
// an address, but must not decide which program runs or read the gateway's environment.
import { isObject, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { chooseVariable, type MovedSecret } from './move-secrets.ts';

/** The reason why the file cannot be imported, as a sentence. */
export class ServerJsonError extends Error {
  override readonly name = 'ServerJsonError';
}

/** Distinguishes a `server.json` from a file with servers by name, which has neither member. */
export const isServerJson = (content: JsonObject): boolean =>
  typeof content.name === 'string' &&
  (Array.isArray(content.remotes) || Array.isArray(content.packages));

/** `com.example/weather` becomes `weather`. */
export const readServerJsonName = ({ name }: JsonObject): string =>
  typeof name === 'string' ? name.slice(name.lastIndexOf('/') + 1) : '';

/** @throws ServerJsonError */
export function convertServerJson(name: string, content: JsonObject) {
  const changes: MovedSecret[] = [];
  const inputs = createInputs(name, changes);
  const remotes = readObjects(content.remotes);
  const packages = readObjects(content.packages);
  const remote = remotes.find(({ type }) => type === 'streamable-http') ?? remotes[0];
  const found = packages.find((one) => findPackageProblem(one) === undefined);
  const kind = findKind(found?.registryType);
  let server: JsonObject;
  if (remote !== undefined) server = convertRemote(remote, inputs);
  else if (found !== undefined && kind !== undefined) {
    server = convertPackage(found, kind, inputs);
    // With options, a container can be given access to the host.
    const what = `imported as options of ${quote(server.command)}: review them in postern.yaml before you start it`;
    if (readObjects(found.runtimeArguments).length > 0)
      changes.push({ server: name, member: 'runtimeArguments', what });
  } else
    throw new ServerJsonError(
      packages.map(findPackageProblem).find(Boolean) ?? 'It has neither "remotes" nor "packages".',
    );
  for (const other of [...remotes, ...packages]) {
    const member = remotes.includes(other) ? `remote ${show(other.url)}` : describePackage(other);
    if (other !== (remote ?? found))
      changes.push({ server: name, member, what: 'left: one is enough' });
  }
  return { server, changes };
}

const readObjects = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

const describePackage = ({ registryType, identifier }: JsonObject) =>
  `package ${show(registryType)} ${show(identifier)}`;

/** Up to 80 characters of untrusted text. */
const show = (value: unknown) => quote(value, 80);

// Remote servers.

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

// Servers that are packages.

interface PackageKind {
  /** The program's default registry, as publishers write it. */
  readonly registry: RegExp;
  readonly identifier: RegExp;
  /** A pinned version, to which later publications do not apply. */
  readonly version: RegExp;
  readonly needsVersion: boolean;
  /** The separator between identifier and version. */
  readonly mark: '@' | ':';
  /** The program that runs the package, and its first arguments. */
  readonly runner: readonly [command: string, ...args: string[]];
  /** The option that passes an environment variable to the server, if the program needs one. */
  readonly variableFlag?: string;
}

/** None of these patterns matches a value that begins like an option. */
const KINDS: Readonly<Record<string, PackageKind>> = {
  npm: {
    registry: /^https:\/\/registry\.npmjs\.org\/?$/,
    identifier: /^(@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*$/i,
    version: /^\d+\.\d+\.\d+([-+][\w.+-]+)?$/,
    needsVersion: true,
    mark: '@',
    runner: ['npx', '-y'],
  },
  pypi: {
    registry: /^https:\/\/pypi\.org(\/simple)?\/?$/,
    identifier: /^[a-z0-9]([\w.-]*[a-z0-9])?$/i,
    version: /^\d[\w.+!-]*$/,
    needsVersion: true,
    mark: '@',
    runner: ['uvx'],
  },
  oci: {
    registry: /^https:\/\/(docker\.io|ghcr\.io)\/?$/,
    identifier: /^[a-z0-9][\w./:@-]*(?<!:latest)$/i,
    version: /^[0-9a-z][\w.-]*$/i,
    needsVersion: false,
    mark: ':',
    runner: ['docker', 'run', '-i', '--rm'],
    variableFlag: '-e',
  },
};

const HAS_TAG = /[:@][^/]*$/;
const RANGE = /^(latest|\d+(\.\d+)?\.x|x)$/i;

/** The reason why the package cannot be imported, in a sentence. */
function findPackageProblem(found: JsonObject) {
  const problem = findObstacle(found);
  return problem && `The ${describePackage(found)} ${problem}`;
}

function findObstacle(found: JsonObject): string | undefined {
  const { registryType, identifier, version, registryBaseUrl, transport } = found;
  const kind = findKind(registryType);
  if (kind === undefined)
    return `cannot be imported: only packages of ${Object.keys(KINDS).join(', ')} can.`;
  if (isObject(transport) && transport.type !== 'stdio')
    return `is reached over HTTP (${show(transport.type)}). Start it yourself, and write its "url" into postern.yaml.`;
  if (typeof identifier !== 'string' || !kind.identifier.test(identifier))
    return `has a name that is not valid for ${registryType}.`;
  const isVersion =
    typeof version === 'string' && kind.version.test(version) && !RANGE.test(version);
  if (version === undefined ? kind.needsVersion : !isVersion)
    return `has the version ${show(version)}. It must be one version, such as 1.4.0.`;
  if (!kind.needsVersion && version === undefined && !HAS_TAG.test(identifier))
    return 'has neither tag nor digest.';
  // The program would fetch this name from its default registry, where it may belong to someone else.
  const isUsual = typeof registryBaseUrl === 'string' && kind.registry.test(registryBaseUrl);
  if (registryBaseUrl !== undefined && !isUsual)
    return `is in a separate registry (${show(registryBaseUrl)}). Set up that registry, and write the command into postern.yaml yourself.`;
  return undefined;
}

const findKind = (type: unknown) =>
  typeof type === 'string' && Object.hasOwn(KINDS, type) ? KINDS[type] : undefined;

/**
 * Variables that make npx, uvx, docker, Node.js, Python or the dynamic loader fetch code and packages from unexpected places: the
 * command would not show what it runs.
 */
const OBEYED_BY_RUNNER =
  /^(?:PATH|HOME|IFS|ENV|BASH_.*|SHELL|PREFIX|LOCPATH|NLSPATH|GCONV_PATH|(?:REQUESTS|CURL)_CA_BUNDLE|(?:NPM|NODE|UV|PIP|DOCKER|LD|DYLD|GLIBC|SSL|COREPACK)_.*|PYTHON.*|.*_PROXY)$/i;
const HARMLESS = /^(?:NODE_ENV|PYTHONUNBUFFERED|PYTHONUTF8|PYTHONIOENCODING)$/;

function convertPackage(found: JsonObject, kind: PackageKind, inputs: Inputs): JsonObject {
  for (const { name, value, default: fallback } of readObjects(found.environmentVariables)) {
    if (typeof name !== 'string' || !/^[A-Za-z_]\w*$/.test(name))
      throw new ServerJsonError(`${show(name)} is not a valid name for an environment variable.`);
    // Values that the operator fills in are the operator's choice.
    const isGiven = value !== undefined || fallback !== undefined;
    if (isGiven && OBEYED_BY_RUNNER.test(name) && !HARMLESS.test(name))
      throw new ServerJsonError(
        `The environment variable ${show(name)} could change which program or package is run. If you trust this file, remove it, and write it into postern.yaml yourself.`,
      );
  }
  const env = inputs.readNamed('env', found.environmentVariables);
  const { mark, runner, variableFlag } = kind;
  const [command, ...first] = runner;
  const identifier = readText(found.identifier, 'identifier');
  // Newer image entries contain the tag in the identifier, older ones have it in `version`.
  const isWhole = typeof found.version !== 'string' || HAS_TAG.test(identifier);
  const args = [
    ...first,
    ...Object.keys(env).flatMap((name) => (variableFlag ? [variableFlag, name] : [])),
    ...inputs.readArguments('runtimeArguments', found.runtimeArguments),
    isWhole ? identifier : `${identifier}${mark}${found.version}`,
    ...inputs.readArguments('packageArguments', found.packageArguments),
  ];
  return { command, args, ...(Object.keys(env).length > 0 && { env }) };
}

// Inputs: values, defaults and variables that users provide.

type Inputs = ReturnType<typeof createInputs>;

function createInputs(server: string, changes: MovedSecret[]) {
  const taken = new Set<string>();
  const note = (member: string, what: string) => changes.push({ server, member, what });

  /** Undefined if the input is left out. */
  function resolve(member: string, key: string, input: JsonObject): string | undefined {
    const { value, default: fallback, isSecret, isRequired } = input;
    if (value !== undefined) return fillIn(key, readText(value, key), input.variables);
    if (isSecret !== true && fallback !== undefined) {
      const text = readText(fallback, key);
      // A closing brace would end the variable reference.
      if (text.includes('}')) return text;
      const variable = choose(key);
      note(member, `${show(text)}, unless ${variable} in .env says otherwise`);
      return `\${${variable}:-${text}}`;
    }
    if (isRequired !== true) {
      const what = isSecret === true ? 'it is a secret that is not required' : 'it is not required';
      note(member, `left out: ${what}`);
      return undefined;
    }
    const variable = choose(key);
    note(member, `to be filled in: put ${variable} into .env${describeInput(input)}`);
    return `\${${variable}}`;
  }

  const choose = (key: string) => {
    const variable = chooseVariable(server, key, (name) => taken.has(name));
    taken.add(variable);
    return variable;
  };

  function fillIn(key: string, template: string, variables: unknown) {
    const known = isObject(variables) ? variables : {};
    // A variable may occur more than once.
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
    /** Fills in a value with `{variables}`. */
    fillIn,
    /** Reads `headers` or `environmentVariables` by name. */
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
          // A flag without a value.
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

const isAsked = ({ isRequired, isSecret, choices, format }: JsonObject) =>
  [isRequired, isSecret].includes(true) || choices !== undefined || format !== undefined;

/** Also matches at the end: the appended text may begin with a brace. */
const COULD_BE_VARIABLE = /\$(\{|$)/;

/** @throws ServerJsonError for a value that is not a string or would read the gateway's environment. */
function readText(value: unknown, what: string) {
  if (typeof value !== 'string')
    throw new ServerJsonError(`${show(what)} must be a text, not ${show(value)}.`);
  if (COULD_BE_VARIABLE.test(value))
    throw new ServerJsonError(
      `${show(what)} is ${show(value)}, and \${ would read the gateway's environment. If you trust this file, remove it, and write it into postern.yaml yourself.`,
    );
  return value;
}

const MAX_DESCRIPTION = 120;

function describeInput({ description, choices }: JsonObject) {
  const said = typeof description === 'string' ? ` (${quote(description, MAX_DESCRIPTION)})` : '';
  return Array.isArray(choices) ? `${said}, one of ${choices.map(show).join(', ')}` : said;
}
