// RFC 6749 §4.1.2: the way back to the client.
import type { Reply } from '../../core/message.ts';

type Pairs = readonly (readonly [name: string, value: string | undefined])[];

/** A redirect to the client's own address, which stays as it was registered, with `pairs` added. */
export function redirectBack(redirectUri: string, pairs: Pairs): Reply {
  const query = new URLSearchParams();
  for (const [name, value] of pairs) if (value !== undefined) query.append(name, value);
  const separator = redirectUri.includes('?') ? '&' : '?';
  return seeOther(`${redirectUri}${separator}${query}`);
}

/** 303: whatever the browser sent here, it goes on with a GET. */
export const seeOther = (location: string): Reply => ({
  status: 303,
  headers: { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' },
});
