import { defineTool, elicit } from 'postern/define';

export const openIncident = defineTool({
  name: 'open_incident',
  description: 'Opens an incident, with what the user knows of it.',
  inputSchema: { type: 'object', additionalProperties: false },
  async run(_args, { ask }) {
    // Two forms at once …
    const { what, severity } = await ask({
      what: elicit('What is broken?', {
        type: 'object',
        properties: { summary: { type: 'string', maxLength: 200 } },
        required: ['summary'],
      }),
      severity: elicit('How bad is it?', {
        type: 'object',
        properties: { level: { type: 'string', enum: ['low', 'high'], default: 'low' } },
        required: ['level'],
      }),
    });
    if (what.action !== 'accept' || severity.action !== 'accept') return said('No incident.');
    if (severity.content.level === 'low') return said(`Noted: ${what.content.summary}`);

    // … and one that depends on them, under a key of its own.
    const { page } = await ask({
      page: elicit('Wake up whoever is on call?', {
        type: 'object',
        properties: { now: { type: 'boolean' } },
        required: ['now'],
      }),
    });
    const woken = page.action === 'accept' && page.content.now;
    return said(`${woken ? 'Paged' : 'Queued'}: ${what.content.summary}`);
  },
});

const said = (text: string) => ({ content: [{ type: 'text', text }] }) as const;
