import { readFileSync } from 'node:fs';

const EXAMPLE = new URL('../../deploy/haproxy/haproxy.cfg', import.meta.url);

/** `docs/operations.md` with the configuration of HAProxy that compose.yaml uses and the tests start. */
export function renderOperationsPage(present: string): string {
  const block = `\`\`\`haproxy\n${readFileSync(EXAMPLE, 'utf8')}\`\`\``;
  return present.replace(/^```haproxy\n.*?^```$/ms, () => block);
}
