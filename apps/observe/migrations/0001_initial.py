import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("observe", "0002_consoles"),
        ("observe", "0003_ticket_secrets"),
        ("observe", "0004_node_http3"),
        ("observe", "0005_pool_tallies"),
    ]

    dependencies = [
        ('definitions', '0001_initial'),
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='CollectorLease',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('shard', models.PositiveSmallIntegerField(unique=True)),
                ('holder', models.CharField(max_length=80)),
                ('until', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Console',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80, unique=True)),
                ('clock_ahead_ms', models.BigIntegerField(default=0)),
                ('heard_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Condition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('object_kind', models.CharField(max_length=20)),
                ('object_id', models.BigIntegerField()),
                ('type', models.CharField(max_length=20)),
                ('status', models.BooleanField(null=True)),
                ('reason', models.CharField(max_length=40)),
                ('message', models.CharField(max_length=1000)),
                ('generation', models.PositiveBigIntegerField(default=0)),
                ('since', models.DateTimeField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('object_kind', 'object_id', 'type'), name='one_verdict_per_type')],
            },
        ),
        migrations.CreateModel(
            name='NodeReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seen_at', models.DateTimeField(null=True)),
                ('generation', models.PositiveBigIntegerField(default=0)),
                ('digest', models.CharField(blank=True, max_length=64)),
                ('on_disk', models.CharField(blank=True, max_length=64)),
                ('haproxy_version', models.CharField(blank=True, max_length=40)),
                ('http3', models.BooleanField(default=False)),
                ('agent_version', models.CharField(blank=True, max_length=40)),
                ('boot_id', models.CharField(blank=True, max_length=64)),
                ('workers', models.PositiveIntegerField(default=0)),
                ('serving', models.BooleanField(default=False)),
                ('reloads', models.PositiveIntegerField(default=0)),
                ('drift', models.JSONField(default=list)),
                ('addresses', models.JSONField(default=dict)),
                ('ticket_secrets', models.CharField(blank=True, max_length=64)),
                ('error', models.CharField(blank=True, max_length=1000)),
                ('last_contact_error', models.CharField(blank=True, max_length=400)),
                ('admitted', models.JSONField(default=dict)),
                ('peers', models.JSONField(default=dict)),
                ('counted_at', models.DateTimeField(null=True)),
                ('node', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='report', to='fleet.node')),
            ],
        ),
        migrations.CreateModel(
            name='PoolTally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('minutes', models.PositiveSmallIntegerField(default=0)),
                ('total', models.PositiveBigIntegerField(default=0)),
                ('failed', models.PositiveBigIntegerField(default=0)),
                ('latency_ms', models.PositiveIntegerField(null=True)),
                ('timed', models.PositiveBigIntegerField(default=0)),
                ('slow', models.PositiveBigIntegerField(default=0)),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tallies', to='definitions.pool')),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='observe_poo_at_90deb6_idx')],
                'constraints': [models.UniqueConstraint(fields=('pool', 'at'), name='one_tally_at_a_time')],
            },
        ),
        migrations.CreateModel(
            name='Sample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('resolution', models.PositiveSmallIntegerField()),
                ('kind', models.CharField(max_length=8)),
                ('object_id', models.CharField(max_length=80)),
                ('parent_id', models.CharField(blank=True, max_length=30)),
                ('seconds', models.FloatField(default=0)),
                ('requests', models.PositiveBigIntegerField(default=0)),
                ('status_2xx', models.PositiveBigIntegerField(default=0)),
                ('status_3xx', models.PositiveBigIntegerField(default=0)),
                ('status_4xx', models.PositiveBigIntegerField(default=0)),
                ('status_5xx', models.PositiveBigIntegerField(default=0)),
                ('connections', models.PositiveBigIntegerField(default=0)),
                ('connections_now', models.PositiveIntegerField(default=0)),
                ('queue_now', models.PositiveIntegerField(default=0)),
                ('bytes_in', models.PositiveBigIntegerField(default=0)),
                ('bytes_out', models.PositiveBigIntegerField(default=0)),
                ('errors', models.PositiveBigIntegerField(default=0)),
                ('latency_ms', models.PositiveIntegerField(default=0)),
                ('latency_buckets', models.JSONField(default=dict)),
                ('status', models.CharField(blank=True, max_length=20)),
                ('check_text', models.CharField(blank=True, max_length=200)),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='samples', to='fleet.node')),
            ],
            options={
                'indexes': [models.Index(fields=['kind', 'object_id', 'resolution', 'at'], name='observe_sam_kind_e97096_idx')],
                'constraints': [models.UniqueConstraint(fields=('resolution', 'at', 'node', 'kind', 'object_id'), name='one_sample_per_bucket')],
            },
        ),
    ]
