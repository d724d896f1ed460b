// §22.7: notifies operators through a webhook, signed as Standard Webhooks describes it (standardwebhooks.com).

import { createHmac } from 'node:crypto';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { type Fetch, FetchError, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { generateSecret } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import type { JsonObject } from '../../platform/json.ts';
import { describeCause, type Log } from '../../platform/log.ts';
import { shorten } from '../../platform/text.ts';

export const NOTIFICATION_KINDS = ['approvals', 'servers', 'lock', 'logins'] as const;

type NotificationKind = (typeof NOTIFICATION_KINDS)[number];

export interface NotifyConfig {
  /** May contain secrets. */
  readonly url: string;
  /** Undefined: notifications are not signed. */
  readonly secret: string | undefined;
  readonly on: readonly NotificationKind[];
}

export interface Notification {
  readonly kind: NotificationKind;
  /** Identifies the subject: further notifications about it are left out for some time. */
  readonly about: string;
  /** For people: one or two sentences, without values of arguments. Names in it may come from strangers. */
  readonly text: string;
  /** Follows the text: an address of the gateway. */
  readonly link?: string | undefined;
  readonly data: JsonObject;
}

export interface Notifier {
  /** Never throws, and nobody waits for it. */
  notify(notification: Notification): void;
  /** False if notifications of this kind are not sent. */
  wants(kind: NotificationKind): boolean;
  /** Undefined: nothing is sent. */
  use(config: NotifyConfig | undefined): void;
  /** Sends nothing more. */
  close(): void;
}

interface NotifierPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly fetch: Fetch;
  /** True for the first replica that asks for this subject within that time. */
  claim(subject: string, seconds: number): Promise<boolean>;
}

/**
 * Seconds for which further notifications about the same subject are left out: for a request for approval its lifetime, and for
 * what the lock hides a day.
 */
const REPEAT_SECONDS: Readonly<Record<NotificationKind, number>> = {
  approvals: 600,
  servers: 60,
  lock: 86_400,
  logins: 600,
};

/** Named in the past tense, as Standard Webhooks recommends. */
const TYPES: Readonly<Record<NotificationKind, string>> = {
  approvals: 'approval.asked',
  servers: 'server.down',
  lock: 'lock.differs',
  logins: 'login.refused',
};

/** Notifications of one kind that a process sends in a minute: strangers can have logins refused under any name. */
const MAX_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
/** Milliseconds before each attempt. */
const PAUSES_MS = [0, 5_000, 60_000];

export function createNotifier({ clock, log, fetch, claim }: NotifierPorts): Notifier {
  const told = createExpiringMap<true>('notifiedSubjects', clock.monotonic);
  let current: NotifyConfig | undefined;
  const minutes = new Map<NotificationKind, { readonly endsAt: number; count: number }>();

  function hasRoom(kind: NotificationKind) {
    const now = clock.monotonic();
    const known = minutes.get(kind);
    const minute = known && known.endsAt > now ? known : { endsAt: now + MINUTE_MS, count: 0 };
    minute.count += 1;
    minutes.set(kind, minute);
    if (minute.count === MAX_PER_MINUTE + 1)
      log.warn('Further notifications of this kind are left out until a minute has passed.', {
        kind,
      });
    return minute.count <= MAX_PER_MINUTE;
  }

  const wants = (kind: NotificationKind) => current?.on.includes(kind) === true;

  async function send({ kind, text, link, data }: Notification, subject: string) {
    // Without a store, each replica sends it.
    const isFirst = await claim(subject, REPEAT_SECONDS[kind]).catch(() => true);
    if (!isFirst) return;
    const message = createMessage({ type: TYPES[kind], text, link, data }, clock.now());
    let problem: string | undefined;
    for (const pauseMs of PAUSES_MS) {
      if (pauseMs > 0) await pause(clock, pauseMs);
      // The file may have changed, or the gateway is closing.
      if (current === undefined || !wants(kind)) return;
      problem = await sendToWebhook(fetch, current, message, clock.now());
      if (problem === undefined) return;
    }
    told.delete(subject);
    log.warn(
      `A notification could not be sent: ${problem}. Check "notify" in the configuration file with postern notify --test.`,
      { kind },
    );
  }

  return {
    notify(notification) {
      const { kind, about } = notification;
      const subject = `${kind} ${about}`;
      if (!wants(kind) || told.get(subject) || !hasRoom(kind)) return;
      told.set(subject, true, clock.monotonic() + REPEAT_SECONDS[kind] * 1000);
      void send(notification, subject);
    },
    wants,
    use(config) {
      current = config;
    },
    close() {
      current = undefined;
    },
  };
}

// The message, and its signature.

interface WebhookMessage {
  /** The same for each attempt. */
  readonly id: string;
  readonly body: string;
}

/** Characters. */
const MAX_TEXT = 1000;

/** As Slack and services compatible with it display it. */
export function createMessage(
  {
    type,
    text,
    link,
    data,
  }: Pick<Notification, 'text' | 'link' | 'data'> & { readonly type: string },
  now: number,
): WebhookMessage {
  const shown = link === undefined ? toPlainText(text) : `${toPlainText(text)} ${link}`;
  const timestamp = new Date(now).toISOString();
  const body = JSON.stringify({ type, timestamp, data, text: shown });
  return { id: `msg_${generateSecret()}`, body };
}

/** Without markup, links, mentions and line breaks: names that strangers chose must not look like the gateway's own words. */
const toPlainText = (text: string) =>
  shorten(escapeInvisible(text.replace(/\s+/g, ' ')), MAX_TEXT)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('://', ': //')
    .replaceAll(/www\./gi, 'www .')
    .replaceAll(/(?<!\w)@/g, '(at)');

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 65_536;

/** Resolves to the problem; undefined if the webhook has accepted the message. `now` in epoch milliseconds. */
export async function sendToWebhook(
  fetch: Fetch,
  { url, secret }: Pick<NotifyConfig, 'url' | 'secret'>,
  { id, body }: WebhookMessage,
  now: number,
): Promise<string | undefined> {
  const timestamp = String(Math.floor(now / 1000));
  try {
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      ...(secret !== undefined && {
        'webhook-signature': sign(secret, `${id}.${timestamp}.${body}`),
      }),
    };
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
    const { status } = await fetchWithLimits(fetch, url, { method: 'POST', headers, body }, limits);
    return status >= 200 && status < 300 ? undefined : `the webhook answered ${status}`;
  } catch (error) {
    // The message of a FetchError has the path of the URL, which is a secret.
    const cause = error instanceof FetchError ? error.cause : error;
    return `the webhook cannot be used (${describeCause(cause)})`;
  }
}

function sign(secret: string, content: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
