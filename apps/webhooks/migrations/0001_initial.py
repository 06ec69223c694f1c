import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("webhooks", "0002_disabled_reason"),
        ("webhooks", "0003_event_names"),
    ]

    dependencies = [
        ('accounts', '0001_initial'),
        ('audit', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Follower',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.CharField(max_length=64)),
                ('type', models.CharField(max_length=80)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='waiting', max_length=9)),
                ('tries', models.PositiveSmallIntegerField(default=0)),
                ('next_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('entry', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='audit.entry')),
            ],
            options={
                'verbose_name_plural': 'deliveries',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('milliseconds', models.PositiveIntegerField(default=0)),
                ('error', models.CharField(blank=True, default='', max_length=400)),
                ('answer', models.TextField(blank=True, default='')),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='webhooks.delivery')),
            ],
            options={
                'ordering': ('id',),
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63)),
                ('url', models.CharField(max_length=2048)),
                ('event_types', models.JSONField(default=list)),
                ('enabled', models.BooleanField(default=True)),
                ('disabled_reason', models.CharField(blank=True, default='', max_length=400)),
                ('secret', models.BinaryField()),
                ('previous_secret', models.BinaryField(null=True)),
                ('previous_until', models.DateTimeField(null=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('not_before', models.DateTimeField(null=True)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('turn', models.PositiveBigIntegerField(default=0)),
                ('created_by', models.CharField(blank=True, default='', max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('version', models.PositiveIntegerField(default=1)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='accounts.account')),
            ],
            options={
                'ordering': ('account__name', 'name'),
            },
        ),
        migrations.AddField(
            model_name='delivery',
            name='webhook',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='webhooks.webhook'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.UniqueConstraint(fields=('account', 'name'), name='one_webhook_per_name'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['webhook', 'next_at', 'id'], name='webhooks_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['finished_at'], name='webhooks_de_finishe_01e236_idx'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('webhook', 'entry'), name='one_delivery_per_event'),
        ),
    ]
