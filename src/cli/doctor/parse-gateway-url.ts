import { UsageError } from '../command-line.ts';

const EXAMPLE = 'for example postern doctor https://mcp.example.com';

/** The address of a gateway as people write it: with /mcp or without. @throws UsageError */
export function parseGatewayUrl(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) {
    throw new UsageError(`${JSON.stringify(text)} is not the URL of a gateway, ${EXAMPLE}.`);
  }
  const { origin, pathname } = new URL(text);
  return origin + pathname.replace(/(\/mcp(\/[^/]*)?)?\/*$/, '');
}
