// Cookies of one session at a server (RFC 6265), as load balancers with sticky sessions need them. They are sent back in that
// session only, to the origin that set them; so `Domain` is ignored.

import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import type { UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { HttpUpstreamConfig } from './http-config.ts';

/** Opens the cookies of a new session, or the stored cookies of a known one; undefined if cookies are not kept. */
export type OpenCookies = (kept?: unknown) => SessionCookies | undefined;

export function createOpenCookies(
  { clock, log }: UpstreamRuntime,
  { name, cookies, url }: HttpUpstreamConfig,
): OpenCookies {
  const isSecure = new URL(url).protocol === 'https:';
  const onExcess = createWarnThrottle(clock, () =>
    log.warn(
      `The MCP server ${name} sets more cookies in a session than are kept (${MAX_COOKIES}, ${MAX_COOKIE_BYTES} bytes): the oldest are dropped. If its sessions get lost, let it, or the balancer in front of it, set fewer; if it needs none, set "cookies": false for it in the configuration file`,
      { server: name },
    ),
  );
  return (kept) => (cookies ? new SessionCookies({ isSecure, clock, onExcess }, kept) : undefined);
}

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
  readonly isSecure: boolean;
  /** Epoch milliseconds; undefined for a cookie that lasts as long as the session. */
  readonly expiresAt: number | undefined;
}

const MAX_COOKIES = 8;
/** Total size of names, values and paths, in bytes. */
const MAX_COOKIE_BYTES = 4096;

interface CookieServer {
  /** True if the server is reached over https. */
  readonly isSecure: boolean;
  readonly clock: Clock;
  /** Called when cookies are dropped because there are too many. */
  onExcess(): void;
}

export class SessionCookies {
  private readonly server: CookieServer;
  /** Keyed by name and path. The cookie that was set last is at the end. */
  readonly kept = new Map<string, Cookie>();
  /** Names that were stored immediately. Without this, a server that keeps changing names would cause a write on each answer. */
  private readonly told = new Set<string>();
  /** True if something has changed since the cookies were last stored. */
  isUnsaved = false;
  /** When any replica last stored them, in epoch milliseconds. */
  storedAt = 0;
  /** Called when a cookie with a new name is set. */
  onNewName: (() => void) | undefined = undefined;

  constructor(server: CookieServer, kept: unknown) {
    this.server = server;
    const { storedAt, list } = isObject(kept) ? kept : {};
    if (typeof storedAt === 'number') this.storedAt = storedAt;
    for (const cookie of Array.isArray(list) ? list : []) {
      if (!isCookie(cookie) || isExpired(cookie, server.clock.now())) continue;
      this.kept.set(toKey(cookie), cookie);
      this.told.add(toKey(cookie));
    }
  }

  /** Keeps the cookies that an answer sets. `path` is the path of its request. */
  take(lines: readonly string[], path: string): void {
    const now = this.server.clock.now();
    let hasNewName = false;
    for (const line of lines) {
      const cookie = readCookie(line, path, now);
      if (cookie !== undefined && this.set(cookie, now)) hasNewName = true;
    }
    if (hasNewName) this.onNewName?.();
  }

  /** True if there is a cookie whose name the other session lacks. */
  hasNews(other: SessionCookies | undefined): boolean {
    return [...this.kept.keys()].some((key) => other?.kept.has(key) !== true);
  }

  /** The headers of a request to `path`, and the cookies that belong to it. */
  addTo(headers: readonly RequestHeaders[], path: string): readonly RequestHeaders[] {
    const { isSecure, clock } = this.server;
    this.dropExpired(clock.now());
    const pairs = [...this.kept.values()]
      .filter((cookie) => (isSecure || !cookie.isSecure) && isWithin(cutQuery(path), cookie.path))
      .sort((one, other) => other.path.length - one.path.length)
      .map(({ name, value }) => `${name}=${value}`);
    return pairs.length === 0 ? headers : [...headers, ['cookie', pairs.join('; ')]];
  }

  /** The record to store; the cookies count as stored from now on. Undefined if there never were any. */
  toRecord(): JsonObject | undefined {
    if (this.told.size === 0) return undefined;
    this.isUnsaved = false;
    this.storedAt = this.server.clock.now();
    this.dropExpired(this.storedAt);
    return { storedAt: this.storedAt, list: [...this.kept.values()] };
  }

  /** True if the cookie should be stored at once. */
  private set(cookie: Cookie, now: number): boolean {
    if (countBytes(cookie) > MAX_COOKIE_BYTES) {
      this.server.onExcess();
      return false;
    }
    const key = toKey(cookie);
    this.isUnsaved = true;
    this.kept.delete(key);
    if (isExpired(cookie, now)) return false;
    this.kept.set(key, cookie);
    this.dropExpired(now);
    this.dropExcess();
    if (this.told.has(key) || this.told.size >= MAX_COOKIES) return false;
    this.told.add(key);
    return true;
  }

  private dropExpired(now: number): void {
    for (const [key, cookie] of this.kept) if (isExpired(cookie, now)) this.kept.delete(key);
  }

  private dropExcess(): void {
    let bytes = 0;
    for (const cookie of this.kept.values()) bytes += countBytes(cookie);
    for (const [key, cookie] of this.kept) {
      if (this.kept.size <= MAX_COOKIES && bytes <= MAX_COOKIE_BYTES) return;
      this.kept.delete(key);
      bytes -= countBytes(cookie);
      this.server.onExcess();
    }
  }
}

const toKey = ({ name, path }: Cookie) => `${name};${path}`;

const countBytes = ({ name, value, path }: Cookie) => name.length + value.length + path.length;

const isExpired = ({ expiresAt }: Cookie, now: number) =>
  expiresAt !== undefined && expiresAt <= now;

const isCookie = (kept: unknown): kept is Cookie =>
  isObject(kept) &&
  [kept.name, kept.value, kept.path].every((member) => typeof member === 'string') &&
  typeof kept.isSecure === 'boolean' &&
  (kept.expiresAt === undefined || typeof kept.expiresAt === 'number');

/** RFC 6265 §4.1.1. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Like browsers, accepts any value that a header can carry back unchanged. */
const VALUE = /^[\x20-\x3a\x3c-\x7e\x80-\xff]*$/;
const SECONDS = /^-?\d+$/;
/** No browser keeps a cookie for longer. */
const MAX_LIFETIME_MS = 400 * 86_400_000;

/** RFC 6265 §5.2. Undefined for a line that is not a cookie, or could not be sent back. */
function readCookie(line: string, requestPath: string, now: number): Cookie | undefined {
  const [pair = '', ...attributes] = line.split(';');
  const [name, value] = cutAt(pair, '=');
  if (value === undefined || !NAME.test(name) || !VALUE.test(value)) return undefined;
  let path = findDefaultPath(cutQuery(requestPath));
  let isSecure = false;
  let maxAge: number | undefined;
  let expires: number | undefined;
  for (const attribute of attributes) {
    const [key, given = ''] = cutAt(attribute, '=');
    switch (key.toLowerCase()) {
      case 'secure':
        isSecure = true;
        break;
      case 'path':
        path = given.startsWith('/') ? given : findDefaultPath(cutQuery(requestPath));
        break;
      case 'max-age':
        if (SECONDS.test(given)) maxAge = now + Number(given) * 1000;
        break;
      case 'expires': {
        const at = Date.parse(given);
        if (!Number.isNaN(at)) expires = at;
        break;
      }
    }
  }
  const end = maxAge ?? expires;
  const expiresAt = end === undefined ? undefined : Math.min(end, now + MAX_LIFETIME_MS);
  return { name, value, path, isSecure, expiresAt };
}

/** The parts before and after the first occurrence of this character, trimmed. */
function cutAt(text: string, character: string): readonly [string, string | undefined] {
  const at = text.indexOf(character);
  return at === -1
    ? [text.trim(), undefined]
    : [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

const cutQuery = (path: string) => path.replace(/\?.*$/s, '');

/** RFC 6265 §5.1.4. */
const findDefaultPath = (path: string) => path.slice(0, path.lastIndexOf('/')) || '/';

/** RFC 6265 §5.1.4. */
const isWithin = (path: string, ofCookie: string) =>
  path === ofCookie ||
  (path.startsWith(ofCookie) && (ofCookie.endsWith('/') || path[ofCookie.length] === '/'));
