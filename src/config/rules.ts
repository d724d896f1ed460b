import { isIP } from 'node:net';
import { extname } from 'node:path';
import { isStringArray, parseObject } from '../platform/json.ts';
import { isSentinelUrl, parseSentinelUrl } from './sentinel-url.ts';

/** Media types of images, by file extension. */
export const IMAGE_TYPES: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.webp': 'image/webp',
};

/** Parses a setting's text. `parse` returns undefined for invalid text. */
export interface Rule<T> {
  parse(text: string): T | undefined;
  /** The allowed values; completes the sentence "It must be …". */
  readonly allowed: string;
  /** Explains why a string is invalid, but does not quote it, since it may be secret. */
  explain?(text: string): string | undefined;
}

/** Describes an invalid text; `shown` is its printable part. */
export function describeInvalid(shown: string, { allowed, explain }: Rule<unknown>, text: string) {
  const explanation = explain?.(text);
  return `${shown} is not valid.${explanation ? ` ${explanation}` : ''} It must be ${allowed}.`;
}

export const anyText: Rule<string> = { parse: (text) => text, allowed: 'any text' };

export const flag: Rule<boolean> = {
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  allowed: 'true or false',
};

/** A text that passes the check, unchanged. */
export const textWith = (isAllowed: (text: string) => boolean, allowed: string): Rule<string> => ({
  parse: (text) => (isAllowed(text) ? text : undefined),
  allowed,
});

/** A text that matches the pattern, unchanged. */
export const matching = (pattern: RegExp, allowed: string): Rule<string> =>
  textWith((text) => pattern.test(text), allowed);

export const integer = (min: number, max: number): Rule<number> => ({
  parse(text) {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  },
  allowed: `a whole number from ${min} to ${max}`,
});

export const integerOrAuto = (min: number, max: number): Rule<number | 'auto'> => {
  const number = integer(min, max);
  return {
    parse: (text) => (text === 'auto' ? 'auto' : number.parse(text)),
    allowed: `auto, or ${number.allowed}`,
  };
};

export const oneOf = <const T extends string>(...values: T[]): Rule<T> => ({
  parse: (text) => values.find((value) => value === text),
  allowed: values.join(', ').replace(/, (?=[^,]*$)/, ' or '),
});

/** An absolute http(s) URL without user info or fragment, as written. */
export const httpUrl = textWith((text) => {
  // The URL is copied into headers, so it may contain only ASCII and no quotes.
  if (!URL.canParse(text) || !/^https?:\/\/[!$-[\]-~]+$/i.test(text)) return false;
  const { username, password } = new URL(text);
  return username + password === '';
}, 'an absolute http or https URL in ASCII, without user info or fragment');

/** The image's origin is written into a Content-Security-Policy, where a semicolon would end the directive. */
export const imageUrl = textWith(
  (text) => httpUrl.parse(text) !== undefined && host.parse(new URL(text).host) !== undefined,
  'the http or https URL of an image, such as https://example.com/logo.svg',
);

/** An image that browsers can display, by file extension. */
export const imageFile = textWith(
  (text) => IMAGE_TYPES[extname(text).toLowerCase()] !== undefined,
  `the path of an image whose name ends in ${Object.keys(IMAGE_TYPES).join(', ')}`,
);

/** A URL to which paths are appended, so a trailing slash is dropped. */
export const baseUrl: Rule<string> = {
  parse(text) {
    const url = httpUrl.parse(text);
    return url === undefined || url.includes('?') ? undefined : url.replace(/\/+$/, '');
  },
  allowed: 'an absolute http or https URL in ASCII, without user info, query and fragment',
};

export const redisUrl: Rule<string> = {
  ...textWith(
    (text) =>
      isSentinelUrl(text)
        ? !('problem' in parseSentinelUrl(text))
        : /^rediss?:\/\/[^\s]+$/.test(text) && URL.canParse(text),
    'redis://… or rediss://… (with ?cluster=true for Redis Cluster), or for Redis Sentinel redis+sentinel://user:password@host:port,host:port/primary or rediss+sentinel://…',
  ),
  explain(text) {
    const parsed = isSentinelUrl(text) ? parseSentinelUrl(text) : undefined;
    return parsed && 'problem' in parsed ? parsed.problem : undefined;
  },
};

export const listOf = (item: Rule<string>, allowed: string): Rule<readonly string[]> => ({
  parse(text) {
    const entries = text.split(',');
    const items = entries.flatMap((entry) => item.parse(entry.trim()) || []);
    return items.length === entries.length ? items : undefined;
  },
  allowed,
});

/** Names that third parties choose: a JSON array if one of them contains a comma. */
export const names = (what: string): Rule<readonly string[]> => {
  const plain = listOf(anyText, '');
  return {
    parse(text) {
      if (!text.startsWith('[')) return isDistinguishedName(text) ? undefined : plain.parse(text);
      const { names: value } = parseObject(`{"names":${text}}`) ?? {};
      return isStringArray(value) && value.length > 0 && !value.includes('') ? value : undefined;
    },
    allowed: `a comma-separated list of ${what}, or a JSON array of them if one has a comma, such as ["CN=ops,OU=groups","admins"]`,
    explain: (text) =>
      isDistinguishedName(text)
        ? 'It looks like one name with commas: write it as a JSON array.'
        : undefined,
  };
};

/**
 * RFC 4514: LDAP and Active Directory name groups in this way. Splitting such a name at its commas would give three useless groups.
 */
const isDistinguishedName = (text: string) => /,\s*(cn|ou|dc|o|c|l|st|uid)=/i.test(text);

/** Stands for an empty list, since an empty variable counts as unset. */
export const NONE = 'none';

/** A list that may be empty. */
export const listOrNone = (item: Rule<string>, allowed: string): Rule<readonly string[]> => {
  const some = listOf(item, allowed);
  return { parse: (text) => (text === NONE ? [] : some.parse(text)), allowed };
};

/** RFC 6454: scheme://host[:port] in lower case; desktop apps have their own schemes. */
export const origin: Rule<string> = {
  parse: (text) =>
    /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*\\,]+$/i.test(text) ? text.toLowerCase() : undefined,
  allowed: 'an origin such as https://app.example.com',
};

/** A host name or address, with or without a port. */
export const host: Rule<string> = {
  parse: (text) =>
    /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i.test(text) ? text.toLowerCase() : undefined,
  allowed: 'a host such as gateway.example.com, or host:port',
};

export const listenAddress = textWith(
  (text) => isIP(text) !== 0 || /^[a-z0-9.-]+$/i.test(text),
  'an IP address or host name to listen on',
);

/** A system user: by name, by number, or as uid:gid, which needs no passwd entry. */
export const systemUser = matching(
  // Programs that look up the user would read a leading hyphen as an option.
  /^([A-Za-z_][A-Za-z0-9_.@-]*\$?|\d{1,10}(:\d{1,10})?)$/,
  'a user of this system, such as postern-programs, or uid:gid, such as 1001:1001',
);

/** One scope: printable ASCII without spaces, quotes and backslashes. */
const SCOPE_TOKEN = /^[\x21\x23-\x5B\x5D-\x7E]+$/;

export const scope = matching(SCOPE_TOKEN, 'a scope');

export const ONE_YEAR_SECONDS = 31_536_000;
export const THIRTY_DAYS_SECONDS = 2_592_000;
export const THIRTY_DAYS_MS = 2_592_000_000;

// RFC 6749 §3.3: scope = scope-token *( SP scope-token ).

/** The scopes in the metadata, and the default for clients that request none (§4.9). */
export const DEFAULT_SCOPES = ['openid', 'profile', 'email'] as const;

/** The scopes in the parameter, in order. */
export const parseScope = (scopes = ''): readonly string[] =>
  scopes.split(' ').filter((name) => name !== '');

export const isScopeToken = (text: string): boolean => SCOPE_TOKEN.test(text);

/** True if every parser splits the parameter in the same way as `parseScope`. */
export const isWellFormedScope = (scopes: string): boolean => scopes.split(' ').every(isScopeToken);
