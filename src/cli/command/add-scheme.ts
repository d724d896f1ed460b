// Addresses as people write them: without a scheme where they mean the usual one.
import { isOnThisMachine } from '../../platform/address.ts';

/** http on this machine, https elsewhere; what has a scheme stays as it is. */
export function addScheme(text: string): string {
  if (text.includes('://')) return text;
  const secure = `https://${text}`;
  return URL.canParse(secure) && isOnThisMachine(new URL(secure).hostname)
    ? `http://${text}`
    : secure;
}
