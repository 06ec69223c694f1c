import apps.compiler.model.stack
import apps.fleet.models
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("fleet", "0002_region_drained_at"),
        ("fleet", "0003_stacks_beside_each_other"),
        ("fleet", "0004_private_networks"),
        ("fleet", "0005_node_settings"),
    ]

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='CloudAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('cloud', models.CharField(choices=[('aws', 'aws'), ('google', 'google')], max_length=6)),
                ('credentials', models.CharField(blank=True, default='', max_length=2048)),
                ('project', models.CharField(blank=True, default='', max_length=63)),
                ('endpoint_url', models.CharField(blank=True, default='', max_length=400)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='cloud_accounts', to='accounts.account')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Fleet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('local_development', models.BooleanField(default=False)),
                ('private_networks', models.JSONField(default=apps.fleet.models.all_private)),
                ('peer_port', models.PositiveIntegerField(default=9700)),
                ('overflow_port', models.PositiveIntegerField(default=9800)),
                ('overflow_tcp_port', models.PositiveIntegerField(default=9900)),
                ('node_settings', models.JSONField(null=True)),
                ('desired_generation', models.PositiveBigIntegerField(default=0)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='fleets', to='accounts.account')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Node',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('url', models.CharField(max_length=400)),
                ('address', models.CharField(default='127.0.0.1', max_length=45)),
                ('port_offset', models.PositiveIntegerField(default=0)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='accounts.account')),
                ('fleet', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='nodes', to='fleet.fleet')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Region',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('title', models.CharField(max_length=120)),
                ('latitude', models.FloatField(null=True)),
                ('longitude', models.FloatField(null=True)),
                ('drained', models.BooleanField(default=False)),
                ('drained_at', models.DateTimeField(null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='regions', to='accounts.account')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='fleet',
            name='region',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='fleets', to='fleet.region'),
        ),
        migrations.CreateModel(
            name='AddressPool',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('blocks', models.JSONField(default=list)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='address_pools', to='accounts.account')),
                ('region', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='address_pools', to='fleet.region')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Stack',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('cloud_region', models.CharField(max_length=40)),
                ('network', models.JSONField(default=dict)),
                ('approval', models.CharField(choices=[('by_hand', 'By Hand'), ('automatic_safe', 'Automatic Safe'), ('automatic', 'Automatic')], default=apps.compiler.model.stack.PlanApproval['BY_HAND'], max_length=14)),
                ('desired_generation', models.PositiveBigIntegerField(default=0)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='stacks', to='accounts.account')),
                ('cloud_account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='stacks', to='fleet.cloudaccount')),
                ('region', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='stacks', to='fleet.region')),
            ],
            options={
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='StaticIP',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=63, unique=True)),
                ('manager', models.CharField(blank=True, default='', max_length=63)),
                ('version', models.PositiveIntegerField(default=1)),
                ('kind', models.CharField(choices=[('node', 'node'), ('vip', 'vip'), ('anycast', 'anycast'), ('elastic', 'elastic'), ('accelerator', 'accelerator'), ('google', 'google')], default='node', max_length=11)),
                ('address', models.GenericIPAddressField(null=True, unique=True)),
                ('addresses', models.JSONField(default=list)),
                ('protected', models.BooleanField(default=False)),
                ('router_id', models.PositiveSmallIntegerField(null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='static_ips', to='accounts.account')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='owned_addresses', to='accounts.account')),
                ('pool', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='static_ips', to='fleet.addresspool')),
                ('region', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='static_ips', to='fleet.region')),
                ('stack', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='static_ips', to='fleet.stack')),
            ],
            options={
                'verbose_name': 'static IP',
                'ordering': ('name',),
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RegionLatency',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('set_ms', models.FloatField(null=True)),
                ('measured_ms', models.FloatField(null=True)),
                ('measured_at', models.DateTimeField(null=True)),
                ('from_region', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='latencies', to='fleet.region')),
                ('to_region', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='latencies_to', to='fleet.region')),
            ],
            options={
                'ordering': ('from_region__name', 'to_region__name'),
                'constraints': [models.UniqueConstraint(fields=('from_region', 'to_region'), name='one_latency_per_pair'), models.CheckConstraint(condition=models.Q(('from_region', models.F('to_region')), _negated=True), name='latency_between_two_regions')],
            },
        ),
    ]
