import { defineTool } from 'postern/define';

export const timeIn = defineTool({
  name: 'time_in',
  title: 'Time in a place',
  description: 'Says what time it is in a time zone.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  inputSchema: {
    type: 'object',
    properties: {
      zone: { type: 'string', description: 'An IANA name, for example Europe/Vienna.' },
    },
    required: ['zone'],
    additionalProperties: false,
  },
  run({ zone }, { user }) {
    try {
      const time = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'short' });
      // Who calls is in the token that the gateway has checked.
      const greeting = user?.name === undefined ? '' : `${user.name}, `;
      return say(`${greeting}it is ${time.format(new Date())} in ${zone}.`);
    } catch {
      // The model reads this and tries again, so it says what is allowed.
      return {
        ...say(`${zone} is no time zone. Use an IANA name such as Asia/Tokyo.`),
        isError: true,
      };
    }
  },
});

const say = (text) => ({ content: [{ type: 'text', text }] });
