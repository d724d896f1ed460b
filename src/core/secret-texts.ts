// What looks like a secret: decided here, for whatever would show a text that others wrote.

/** Of variables, headers, options and parameters. */
const SECRET_NAME =
  /token|key|secret|pass|pwd|credential|auth(?!or(?!iz))|cookie|signature|bearer|jwt/i;

/** `--key-file` and `TOKEN_PATH` name a file, and `--max-tokens` and `--no-auth` have no secret. */
const HARMLESS_NAME = /(?:file|path|dir|url|uri)$|max[_-]?tokens?|^-{0,2}no-|-type$/i;

export const isSecretName = (name: string): boolean =>
  SECRET_NAME.test(name) && !HARMLESS_NAME.test(name);

/** Of services that many use, and JWTs. */
const SECRET_FORM =
  /\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeoprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)/g;

/** `--token=…`, `TOKEN=…`, `Authorization: Bearer …`. */
const ASSIGNMENT = /^-{0,2}([\w.-]{1,100})(?:=|:\s*)(?:(?:Bearer|Basic|Token)\s+)?(\S.*)$/is;

const OPTION = /^--?[\w-]{1,100}$/;

/** `scheme://user:password@host`; alone, what stands before the @ is a secret, too. */
const USER_INFO = /[a-z][a-z0-9+.-]{0,30}:\/\/(?:([^\s/?#@:]*):)?([^\s/?#@]+)@/gi;

const PARAMETER = /[?&;#]([^\s=&;#]{1,100})=([^\s&;#]+)/g;

/** The parts that look like secrets of what a program is called with; in a URL also as a program would decode them. */
export const findSecretArguments = (args: readonly string[]): readonly string[] =>
  args.flatMap((text, index) => findInArgument(text, args[index - 1]));

const findInArgument = (text: string, before: string | undefined): readonly string[] => [
  ...findSecretParts(text),
  ...(isValueOfSecretOption(text, before) ? [text] : []),
];

/** A command as it may be shown: somebody may have written its arguments there, too. */
export const hideSecretArguments = (command: string): string =>
  command
    .split(/(\s+)/)
    .map((word, index, words) =>
      findInArgument(word, words[index - 2]).reduce(
        (shown, secret) => shown.replaceAll(secret, '…'),
        word,
      ),
    )
    .join('');

function findSecretParts(text: string): readonly string[] {
  const [, name, assigned] = ASSIGNMENT.exec(text) ?? [];
  const parameters = [...text.matchAll(PARAMETER)].filter(([, key = '']) => isSecretName(key));
  const ofUrls = [...text.matchAll(USER_INFO), ...parameters].flatMap(([, , value = '']) => [
    value,
    decode(value),
  ]);
  return [
    ...(name !== undefined && assigned !== undefined && isSecretName(name) ? [assigned] : []),
    ...ofUrls,
    ...[...text.matchAll(SECRET_FORM)].map(([whole]) => whole),
  ];
}

/** `--token` before it, which has no value of its own. */
const isValueOfSecretOption = (text: string, option: string | undefined): boolean =>
  option !== undefined && OPTION.test(option) && isSecretName(option) && !text.startsWith('-');

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
