// Prints, after the lab has started, the values to copy into a gateway's settings, or into a client.
import type { Lab, LabProvider } from './start-lab.ts';

export function printLab({ pageUrl, providers }: Lab): void {
  for (const provider of providers) console.log(`${describeProvider(provider)}\n`);
  console.log(`Who is logged in, and "log out everywhere": ${pageUrl}`);
  console.log('Press Ctrl+C to end.');
}

export const writeSettings = ({ emulator }: LabProvider): string =>
  Object.entries(emulator.env)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');

function describeProvider(provider: LabProvider): string {
  const { name, emulator, gateway } = provider;
  const { title } = emulator.habits;
  if (gateway === undefined) {
    return `${title} at ${emulator.origin}. Settings of a gateway:\n${indent(writeSettings(provider))}`;
  }
  const { mcpUrl } = gateway;
  return `${title} at ${emulator.origin}, with a gateway in front of it at ${mcpUrl}. Add it to a client:
${indent(`claude mcp add --transport http postern-${name} ${mcpUrl}`)}
or go the whole way without one:
${indent(`npm run demo -- ${mcpUrl}`)}`;
}

const indent = (text: string): string => text.replaceAll(/^/gm, '  ');
