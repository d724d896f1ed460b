// Parses redis+sentinel://[user:password@]host:port[,host:port]/<primary>[/<db>][?sentinelPassword=…]. `URL` cannot parse it, since
// it allows only one host.
import { decodePercent } from '../platform/json.ts';

export interface SentinelUrl {
  /** `rediss+sentinel://`: TLS to both the sentinels and Redis. */
  readonly isTls: boolean;
  /** The user name for Redis; `password` is for Redis as well. */
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Never empty. */
  readonly sentinels: readonly SentinelAddress[];
  /** The name by which the sentinels know the primary. */
  readonly primaryName: string;
  readonly db: number;
  readonly sentinelPassword: string | undefined;
}

export interface SentinelAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** A problem with the URL. The message never quotes the URL, any part of which may be a password. */
interface SentinelUrlProblem {
  readonly problem: string;
}

const SENTINEL_PORT = 26_379;
const PARAMETER = 'sentinelPassword';

export const isSentinelUrl = (text: string): boolean => /^rediss?\+sentinel:/.test(text);

/** For strings that `isSentinelUrl` accepts. */
export function parseSentinelUrl(text: string): SentinelUrl | SentinelUrlProblem {
  const parts = /^(rediss?)\+sentinel:\/\/([^/?#\s]*)(?:\/([^?#\s]*))?(?:\?([^#\s]*))?$/.exec(text);
  if (parts === null) return { problem: 'It is not a URL, or contains a space or a #.' };
  if (decodePercent(text) === undefined) return { problem: 'A % in it must be written as %25.' };
  const [, scheme, authority = '', path = '', query = ''] = parts;
  const at = authority.lastIndexOf('@');
  const [username, password] = splitOnce(authority.slice(0, Math.max(at, 0)), ':');
  const hosts = authority.slice(at + 1).split(',');
  const sentinels = hosts.flatMap((host) => parseAddress(host) ?? []);
  const [primaryName = '', db = '0', ...furtherSegments] = path.split('/');
  const parameters = query.split('&').map((parameter) => splitOnce(parameter, '='));
  const sentinelPassword = parameters.find(([name]) => name === PARAMETER)?.[1];

  const problem =
    (username !== '' &&
      password === '' &&
      'A user needs a password (user:password@, or :password@ without a user).') ||
    (sentinels.length < hosts.length &&
      'Each sentinel must be host or host:port, with a port from 1 to 65535 and brackets around an IPv6 address. In a password, each of @ / ? # , must be percent-encoded.') ||
    (primaryName === '' &&
      'The name of the primary is missing. It follows the sentinels, for example redis+sentinel://sentinel-1,sentinel-2,sentinel-3/mymaster.') ||
    ((furtherSegments.length > 0 || !/^\d{1,5}$/.test(db)) &&
      'Only the number of a database can follow the name of the primary.') ||
    (parameters.some(([name]) => name === 'cluster') &&
      'cluster cannot be used with Sentinel. For Redis Cluster, use redis:// or rediss:// with ?cluster=true.') ||
    (parameters.some(([name]) => name !== PARAMETER && name !== '') &&
      `The only parameter is ${PARAMETER}.`);
  if (problem) return { problem };
  return {
    isTls: scheme === 'rediss',
    username: decodeGiven(username),
    password: decodeGiven(password),
    sentinels,
    primaryName: decodeURIComponent(primaryName),
    db: Number(db),
    sentinelPassword: decodeGiven(sentinelPassword ?? ''),
  };
}

/** For a `REDIS_URL` that the checks at startup have validated. */
export function requireSentinelUrl(text: string): SentinelUrl {
  const parsed = parseSentinelUrl(text);
  if ('problem' in parsed) throw new Error(`REDIS_URL is not valid. ${parsed.problem}`);
  return parsed;
}

export const formatAddress = ({ host, port }: SentinelAddress): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;

function parseAddress(text: string) {
  const [, ipv6, name, port = String(SENTINEL_PORT)] =
    /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const host = ipv6 ?? name;
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return host !== undefined && isPort ? { host, port: Number(port) } : undefined;
}

/** The second part is empty if the separator is missing. */
function splitOnce(text: string, separator: string): readonly [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

const decodeGiven = (text: string) => (text === '' ? undefined : decodeURIComponent(text));
