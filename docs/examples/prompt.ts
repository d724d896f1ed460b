import { definePrompt } from 'postern/define';

const SERVICES = ['checkout', 'search', 'shipping'];

export const investigate = definePrompt({
  name: 'investigate',
  title: 'Investigate an alert',
  description: 'Has the model look into an alert with the tools of this service.',
  arguments: [
    {
      name: 'service',
      description: 'Which service.',
      required: true,
      complete: (typed) => SERVICES.filter((service) => service.startsWith(typed)),
    },
    {
      name: 'tone',
      description: 'brief (the default) or detailed.',
      required: false,
      values: ['brief', 'detailed'],
    },
  ],
  get({ service, tone = 'brief' }) {
    const text = `Find out why ${service} raised an alert. Write a ${tone} report.`;
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  },
});
