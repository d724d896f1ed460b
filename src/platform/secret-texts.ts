// Finds and redacts secrets in untrusted text before it is shown.

/** Matches names of variables, headers, options and parameters that hold secrets. */
const SECRET_NAME =
  /token|key|secret|pass|pwd|credential|auth(?!or(?!iz))|cookie|signature|bearer|jwt/i;

/** Exceptions: `--key-file` and `TOKEN_PATH` name a file, `--max-tokens` and `--no-auth` hold no secret. */
const HARMLESS_NAME = /(?:file|path|dir|url|uri)$|max[_-]?tokens?|^-{0,2}no-|-type$/i;

export const isSecretName = (name: string): boolean =>
  SECRET_NAME.test(name) && !HARMLESS_NAME.test(name);

/** Token formats of popular services, and JWTs. */
const SECRET_FORM =
  /\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)/g;

/** `--token=…`, `TOKEN=…`, `Authorization: Bearer …`. */
const ASSIGNMENT = /^-{0,2}([\w.-]{1,100})(?:=|:\s*)(?:(?:Bearer|Basic|Token)\s+)?(\S.*)$/dis;

const OPTION = /^--?[\w-]{1,100}$/;

/** Plain options: `-v`, `--verbose`, `--log-level=2`. */
const OPTION_IN_WORDS = /^(?:-[a-z]?|--(?:[a-z]+(?:-[a-z]+)*(?:=.*)?)?)$/is;

/** Nested assignments: `--header=X-Api-Key: …`, `--env=TOKEN=…`. */
const NESTED = /^(-{1,2}[\w-]{1,100}=)(.+)$/s;

/** `"apiKey": "…"` in a JSON argument. */
const JSON_MEMBER = /"([^"\\]{1,100})"\s*:\s*"((?:[^"\\]|\\.)+)"/dgs;

/** `scheme://user:password@host`; user info without a colon is a secret as well. */
const USER_INFO = /[a-z][a-z0-9+.-]{0,30}:\/\/(?:([^\s/?#@:]*):)?([^\s/?#@]+)@/dgi;

const PARAMETER = /[?&;#]([^\s=&;#]{1,100})=([^\s&;#]+)/dg;

/** A part of a string that looks like a secret. */
interface SecretPart {
  readonly start: number;
  readonly end: number;
  /** The name that goes with the value, such as `--api-key` or `token`. */
  readonly name: string;
}

/** Finds secrets in the arguments of a program; in URLs also in percent-decoded form. */
export const findSecretArguments = (args: readonly string[]): readonly string[] =>
  args.flatMap((text, index) => findInArgument(text, args[index - 1]));

/** Replaces each secret in a command line. */
export const replaceSecretsOfCommand = (
  command: string,
  replace: (secret: string, name: string) => string,
): string => mapWords(command, (word, before) => replaceSecrets(word, before, replace));

/** True if remaining text resembles a token: `Bearer …`, or a long word of letters and several digits. */
export const looksLikeSecret = (text: string): boolean =>
  LIKE_SECRET.test(text.replace(/\$\{[^}]*\}/g, ' '));

const LIKE_SECRET =
  /\b(?:Bearer|Basic)\s+[^\s"']{6,}|(?<![\w-])(?=[\w-]*[a-z])(?=(?:[a-z_-]*\d){4})[\w-]{20,}/i;

const findInArgument = (text: string, before: string | undefined): readonly string[] =>
  findSecretParts(text, before).flatMap(({ start, end }) => {
    const value = text.slice(start, end);
    return [value, decode(value)];
  });

/** A command in a form that is safe to show, even if it contains arguments. */
export const hideSecretArguments = (command: string): string =>
  mapWords(command, (word, before) =>
    findInArgument(word, before).reduce((shown, secret) => shown.replaceAll(secret, '…'), word),
  );

const mapWords = (command: string, map: (word: string, before: string | undefined) => string) =>
  command
    .split(/(\s+)/)
    .map((word, index, words) => map(word, words[index - 2]))
    .join('');

/**
 * Replaces each secret in the text; a reference to a variable is not a secret. `before` is the preceding argument.
 */
export function replaceSecrets(
  text: string,
  before: string | undefined,
  replace: (secret: string, name: string) => string,
): string {
  let [replaced, end] = ['', 0];
  for (const part of joinOverlaps(findSecretParts(text, before))) {
    const secret = text.slice(part.start, part.end);
    replaced +=
      text.slice(end, part.start) + (secret.includes('${') ? secret : replace(secret, part.name));
    end = part.end;
  }
  return replaced + text.slice(end);
}

/** In order and without overlaps, since a token may match both by name and by format. */
function joinOverlaps(parts: readonly SecretPart[]): readonly SecretPart[] {
  const joined: SecretPart[] = [];
  for (const part of [...parts].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = joined.at(-1);
    if (last === undefined || part.start >= last.end) joined.push(part);
    else if (part.end > last.end) joined[joined.length - 1] = { ...last, end: part.end };
  }
  return joined;
}

function findSecretParts(text: string, before: string | undefined): readonly SecretPart[] {
  const assigned = findPart(ASSIGNMENT.exec(text));
  const known = [...text.matchAll(SECRET_FORM)].map(({ index, 0: token }) => ({
    start: index,
    end: index + token.length,
    name: 'token',
  }));
  return [
    ...assigned,
    ...(assigned.length === 0 ? findNested(text) : []),
    ...[...text.matchAll(JSON_MEMBER)].flatMap(findPart),
    ...[...text.matchAll(USER_INFO)].flatMap((match) => locateValue(match, 'password')),
    ...[...text.matchAll(PARAMETER)].flatMap(findPart),
    ...known,
    ...(before !== undefined && isValueOfSecretOption(text, before)
      ? [{ start: 0, end: text.length, name: before }]
      : []),
  ];
}

function findNested(text: string): readonly SecretPart[] {
  const [, option = '', value = ''] = NESTED.exec(text) ?? [];
  return findPart(ASSIGNMENT.exec(value)).map(({ start, end, name }) => ({
    start: option.length + start,
    end: option.length + end,
    name,
  }));
}

/** Expects a match whose first group is a name and whose second group is a value. */
function findPart(match: RegExpMatchArray | null): readonly SecretPart[] {
  const name = match?.[1] ?? '';
  return match !== null && isSecretName(name) ? locateValue(match, name) : [];
}

function locateValue({ indices }: RegExpMatchArray, name: string): readonly SecretPart[] {
  const [start, end] = indices?.[2] ?? [];
  return start === undefined || end === undefined ? [] : [{ start, end, name }];
}

/** True if the preceding argument is `--token` without a value. Some tokens begin with a hyphen. */
const isValueOfSecretOption = (text: string, option: string) =>
  OPTION.test(option) && isSecretName(option) && !OPTION_IN_WORDS.test(text);

function decode(text: string) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Strips URIs for log lines, the audit log, traces and pages: user info contains passwords, query and fragment contain arguments
// and keys. URI parsers disagree about malformed URIs, so everything that any of them could take for these parts is removed.

/** Start of query or fragment: plain, percent-encoded (repeatedly), or of a URI template. */
const QUERY = /\{?(?:[?#]|%(?:25)*(?:3f|23)).*$/is;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
const AT = /@|%(?:25)*40/gi;

/** Strips a string that is meant to be a URI, in linear time. */
export function stripUri(uri: string): string {
  // Browsers drop these characters (WHATWG URL, "basic URL parser") and read a backslash as a slash.
  const told = uri
    .replace(/[\t\n\r]/g, '')
    .replace(/^[\0-\x20]+/, '')
    .replace(QUERY, '');
  const [scheme = ''] = SCHEME.exec(told) ?? [];
  const [slashes = ''] = /^[/\\]*/.exec(told.slice(scheme.length)) ?? [];
  const start = scheme.length + slashes.length;
  return told.slice(0, start) + told.slice(start + findHost(told.slice(start)));
}

/** Index after the user info; 0 without one. */
function findHost(text: string) {
  const [authority = ''] = /^[^/\\]*/.exec(text) ?? [];
  // A port consists of digits; anything else after a colon is the start of a password that contains a slash.
  const hasPort = /^(?:\[[^\]]*\]|[^:]*)(?::\d*)?$/.test(authority);
  const end = hasPort ? authority.length : text.length;
  const last = [...text.slice(0, end).matchAll(AT)].at(-1);
  return last === undefined ? 0 : last.index + last[0].length;
}

/** Matches a word with a scheme, or one that begins with two slashes. */
const URI_IN_TEXT = /(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:[^\s"\\]+|(?<![:\w])\/\/[^\s"\\]+/gi;

/**
 * Strips the URIs in untrusted text, such as a server's message. URIs without slashes lose only their query: `name:ada@example.com`
 * is usually not a URI.
 */
export const stripUrisIn = (text: string): string =>
  /[?#@%]/.test(text) ? text.replace(URI_IN_TEXT, stripWord) : text;

const stripWord = (word: string) =>
  /^[^/]*\/\//.test(word) ? stripUri(word) : word.replace(QUERY, '');
