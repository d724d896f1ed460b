import { addScheme } from '../command/add-scheme.ts';
import { UsageError } from '../command/usage-error.ts';

const EXAMPLE = 'for example postern doctor https://mcp.example.com';

/** The address of a gateway as people write it: with /mcp or without, and perhaps without https://. @throws UsageError */
export function parseGatewayUrl(text: string): string {
  const url = addScheme(text);
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new UsageError(`${JSON.stringify(text)} is not the URL of a gateway, ${EXAMPLE}.`);
  }
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/(\/mcp(\/[^/]*)?)?\/*$/, '');
}
