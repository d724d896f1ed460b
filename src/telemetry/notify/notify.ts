// §22.7: notifies operators through a webhook, signed as Standard Webhooks describes it (standardwebhooks.com).

import { createHmac } from 'node:crypto';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { getMessage } from '../../platform/error-code.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { generateSecret } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
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
  /** Names the rule's tool, the server, or the client: further notifications about it are left out for some time. */
  readonly about: string;
  /** One sentence for people, without values of arguments. May contain names that strangers chose. */
  readonly text: string;
  readonly data: JsonObject;
}

/** Never throws, and nobody waits for it. */
export type Notify = (notification: Notification) => void;

export interface Notifier {
  readonly notify: Notify;
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

/** Seconds for which further notifications about the same subject are left out. A lock differs until somebody approves. */
const REPEAT_SECONDS: Readonly<Record<NotificationKind, number>> = {
  approvals: 60,
  servers: 60,
  lock: 3600,
  logins: 60,
};

/** By Standard Webhooks: what happened, in the past. */
const TYPES: Readonly<Record<NotificationKind, string>> = {
  approvals: 'approval.asked',
  servers: 'server.down',
  lock: 'lock.differs',
  logins: 'login.refused',
};

/** Notifications of one kind that a process sends in a minute: strangers can have logins refused under any name. */
const MAX_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
/** Milliseconds before each further attempt. */
const PAUSES_MS = [5_000, 60_000];

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
    return minute.count <= MAX_PER_MINUTE;
  }

  async function send(config: NotifyConfig, notification: Notification, subject: string) {
    const { kind, text, data } = notification;
    // Without a store, each replica sends it.
    const isFirst = await claim(subject, REPEAT_SECONDS[kind]).catch(() => true);
    if (!isFirst) return;
    const message = createMessage(TYPES[kind], text, data, clock.now());
    for (const pauseMs of [...PAUSES_MS, undefined]) {
      const problem = await sendToWebhook(fetch, config, message, clock.now());
      if (problem === undefined || current === undefined) return;
      if (pauseMs === undefined)
        log.warn(
          `A notification could not be sent: ${problem}. Check "notify" in the configuration file with postern notify --test.`,
          { kind, about: notification.about },
        );
      else await pause(clock, pauseMs);
    }
  }

  return {
    notify(notification) {
      const { kind, about } = notification;
      const config = current;
      const subject = `${kind} ${about}`;
      if (config?.on.includes(kind) !== true || told.get(subject) || !hasRoom(kind)) return;
      told.set(subject, true, clock.monotonic() + REPEAT_SECONDS[kind] * 1000);
      void send(config, notification, subject);
    },
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

/** `text` is what Slack and others show; they read `<`, `>` and `&` as markup. */
export function createMessage(
  type: string,
  text: string,
  data: JsonObject,
  now: number,
): WebhookMessage {
  const shown = shorten(escapeInvisible(text), MAX_TEXT)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')

    .replaceAll('>', '&gt;');
  const timestamp = new Date(now).toISOString();
  return {
    id: `msg_${generateSecret()}`,
    body: JSON.stringify({ type, timestamp, data, text: shown }),
  };
}

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
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(secret !== undefined && {
      'webhook-signature': sign(secret, `${id}.${timestamp}.${body}`),
    }),
  };
  const { host } = new URL(url);
  try {
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
    const { status } = await fetchWithLimits(fetch, url, { method: 'POST', headers, body }, limits);
    return status >= 200 && status < 300 ? undefined : `${host} answered ${status}`;
  } catch (error) {
    return `${host} cannot be used (${getMessage(error)})`;
  }
}

function sign(secret: string, content: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}
