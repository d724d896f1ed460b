// RFC 6749 §4.1.2: the way back to the client.
import { createRedirectReply, type Reply } from '../../endpoint/message.ts';

type Pairs = readonly (readonly [name: string, value: string | undefined])[];

/** The client's own address, which stays as it was registered, with `pairs` added. */
export function addToRedirectUri(redirectUri: string, pairs: Pairs): string {
  const query = new URLSearchParams();
  for (const [name, value] of pairs) if (value !== undefined) query.append(name, value);
  const separator = redirectUri.includes('?') ? '&' : '?';
  return `${redirectUri}${separator}${query}`;
}

export const redirectToClient = (redirectUri: string, pairs: Pairs): Reply =>
  createRedirectReply(addToRedirectUri(redirectUri, pairs));
