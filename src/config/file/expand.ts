// Expands environment variables in values of the configuration file: `${VAR}`, `${VAR:-default}`, `${env:VAR}`.

import { findNearestName } from '../../platform/nearest-name.ts';
import { SETTINGS } from '../config.ts';
import { type Env, listVariables } from '../setting.ts';

/** Variables that name files and folders with certificate authorities, as common runtimes and tools read them. */
const CERTIFICATE_VARIABLES = [
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
  'NODE_USE_SYSTEM_CA',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'AWS_CA_BUNDLE',
  'DENO_CERT',
] as const;

/** §18.3: the few variables of the gateway's environment that every program needs. The others may be secrets of the gateway. */
export const PASSED_ON: readonly string[] = [
  ...['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR'],
  ...CERTIFICATE_VARIABLES,
];

type Expanded =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'problem'; readonly message: string };

/** True if the text contains variables to expand. The result may then be secret. */
export const hasVariable = (text: string): boolean => text.includes('${');

/** `$${` escapes `${`. An unterminated `${` matches up to the end of the text. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;

/** Expands variables once: their values are not expanded again. */
export function expandVariables(text: string, env: Env): Expanded {
  const problems: string[] = [];
  const expanded = text.replace(REFERENCE, (whole, reference?: string, end?: string) => {
    if (reference === undefined) return '${';
    const result =
      end === '}' ? expandReference(reference, env) : problem(`A \${ has no }. ${LITERAL}`);
    if (result.kind === 'problem') problems.push(result.message);
    return result.kind === 'text' ? result.text : whole;
  });
  return problems.length === 0
    ? { kind: 'text', text: expanded }
    : { kind: 'problem', message: [...new Set(problems)].join(' ') };
}

/**
 * Values that environment variables contribute to the text, except those of variables that every program gets anyway, such as HOME.
 */
export const listValues = (text: string, env: Env): readonly string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, reference = '']) => {
    const [, name = ''] = FORM.exec(reference) ?? [];
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    return value && !PASSED_ON.includes(name) ? [value] : [];
  });

const FORM = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

function expandReference(reference: string, env: Env): Expanded {
  const [, name, fallback] = FORM.exec(reference) ?? [];
  if (name === undefined) return describeForeign(reference);
  // An empty variable counts as unset, as it does for settings: compose files pass empty variables.
  const value = (Object.hasOwn(env, name) && env[name]) || undefined;
  if (fallback?.includes('${'))
    return problem(`The default of \${${name}:-…} cannot contain another variable.`);
  const text = value ?? fallback;
  if (isOwnSecret(name, value) && (value !== undefined || text === undefined))
    return problem(
      `${name} is one of the gateway's secrets, which no server gets. If the server needs this value, put it into a separate variable, and write that variable here.`,
    );
  if (text !== undefined) return { kind: 'text', text };
  if (EDITOR_VARIABLES.has(name)) return describeForeign(name);
  const wayOut = `write a default: \${${name}:-default}.`;
  if (Object.hasOwn(env, name))
    return problem(
      `The environment variable ${name} is empty, which counts as not set. Give it a value (in .env, too), or ${wayOut}`,
    );
  const nearest = findNearestName(name, Object.keys(env));
  const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return problem(
    `The environment variable ${name} is not set.${meant} Set it (in .env, too), or ${wayOut}`,
  );
}

const LITERAL = 'For the characters ${ themselves, write $${.';

/** Variables that editors define themselves, and that do not exist here. */
const EDITOR_VARIABLES = new Set([
  'workspaceFolder',
  'workspaceFolderBasename',
  'userHome',
  'pathSeparator',
  'file',
  'cwd',
]);

function describeForeign(reference: string): Expanded {
  if (reference.startsWith('input:'))
    return problem(
      `\${${reference}} is an input that VS Code asks its user for, and Postern cannot ask. Put the value into an environment variable, and write \${${toVariableName(reference.slice('input:'.length)) || 'NAME'}} here.`,
    );
  if (reference === 'userHome')
    return problem(`\${userHome} is known to editors only. Write \${HOME}, or the path itself.`);
  if (EDITOR_VARIABLES.has(reference) || /^workspaceFolder:/.test(reference))
    return problem(
      `\${${reference}} is known to editors only: Postern has no workspace. Write the path itself.`,
    );
  return problem(`A variable is written \${NAME}, \${NAME:-default} or \${env:NAME}. ${LITERAL}`);
}

const problem = (message: string): Expanded => ({ kind: 'problem', message });

/** Suggests a name for an environment variable that holds this value: `--api-key` becomes `API_KEY`. */
export const toVariableName = (text: string): string =>
  text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/^_+(?=[A-Z])/, '')
    // A variable name in a reference cannot begin with a digit.
    .replace(/^(?=\d)/, '_');

// The gateway's own secrets in the environment, which are never passed to a server.

const SECRET_VARIABLES: ReadonlySet<string> = new Set(
  SETTINGS.filter(({ isSecret }) => isSecret).flatMap(listVariables),
);

/** Variables whose value is secret only if the URL has user info or a query. */
const ADDRESS = /_(?:URL|PROXY)$/;
const PLAIN_URL = /^[a-z][a-z0-9+.-]*:\/\/[^@?#\s]*$/i;

/** True if a variable holds, or is meant to hold, a secret of the gateway. */
const isOwnSecret = (variable: string, value: string | undefined) =>
  SECRET_VARIABLES.has(variable) &&
  !(ADDRESS.test(variable) && (value === undefined || PLAIN_URL.test(value)));
