// What the provider answers: as data that both modes read, and as the reply for a client.
import type { Reply, ReplyError } from '../../endpoint/message.ts';

export interface ProviderResponse {
  readonly status: number;
  /** Its content type: nothing else of what the provider's headers say is a client's matter. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Set from status 400 on. */
  readonly refusal: ProviderRefusal | undefined;
}

/** RFC 6749 §5.2. */
export interface ProviderRefusal {
  /** The `error` of the answer, where it has one. */
  readonly code: string | undefined;
  /** What the provider said, as a sentence for the log: no secret is in it. */
  readonly message: string;
  /** The gateway's client at the provider was refused, which only an operator can mend. */
  readonly isProviderClientRefused: boolean;
}

export const renderProviderResponse = ({
  status,
  headers,
  body,
  refusal,
}: ProviderResponse): Reply => ({
  status,
  headers: { ...headers, 'Cache-Control': 'no-store' },
  body,
  ...(refusal && { error: describeRefusal(refusal) }),
});

/** How the log names a refusal. */
export const describeRefusal = ({
  isProviderClientRefused,
  message,
}: ProviderRefusal): ReplyError => ({
  key: isProviderClientRefused ? 'gateway_refused_by_provider' : 'refused_by_provider',
  message,
  logLevel: isProviderClientRefused ? 'warn' : undefined,
});
